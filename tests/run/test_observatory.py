"""What is seen of a stopped project: catalog, epochs, views, quality, the machine, one event."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import pytest
from audit.traced import Traced, event

from headrace.api.get_request import GetRequest, response_type
from headrace.api.resources.catalog import CatalogRequest
from headrace.api.resources.epochs import EpochsRequest
from headrace.api.resources.events import EventRequest
from headrace.api.resources.quality import QualityRequest
from headrace.api.resources.system import SystemRequest
from headrace.api.resources.view_detail import ViewDetailRequest
from headrace.api.routes import GET_REQUESTS
from headrace.core.errors import NotFound, NotReady, Unavailable
from headrace.core.event import DAMAGED, OVERLONG, EventStatus
from headrace.core.time import HOUR
from headrace.define.project import load_project
from headrace.log.decode import MARKED
from headrace.run.observatory.disk import DiskGrowth
from headrace.run.observatory.handlers import HANDLERS
from headrace.run.offline import Offline


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    """Four records in a generation, two more in an epoch, and two in the log."""
    made = Traced(tmp_path_factory.mktemp("observatory") / "project")
    made.send(event("/a", 5, event_id="e1"), event("/b", 65, ms=3, event_id="e2"))
    made.send(event("/a", 5, event_id="e1"), status=EventStatus.DUPLICATE)
    made.send(b"not json", partition=1)
    made.epoch()
    made.generation()
    made.send(event("/a", 66, ms=30, event_id="e3", agent="curl"), event("/z", 67, event_id="e4"))
    made.epoch()
    made.send(event("/a", 7, event_id="e5", agent={"name": "x"})[:-1] + b', "far": 1e400}')
    made.send(b'{"ts": "half past six"}', partition=1)
    yield made
    made.close()


@pytest.fixture(scope="module")
def offline(traced: Traced) -> Iterator[Offline]:
    service = traced.offline()
    yield service
    service.close()


def test_each_question_has_an_answer() -> None:
    assert set(HANDLERS) == GET_REQUESTS


@pytest.mark.parametrize("question", HANDLERS)
def test_an_answer_is_of_the_type_that_its_question_says(question: type[GetRequest[Any]]) -> None:
    types = get_type_hints(HANDLERS[question])
    assert (types["request"], types["return"]) == (question, response_type(question))


def test_the_catalog_has_streams_with_columns_and_types(offline: Offline) -> None:
    streams = {stream.name: stream for stream in offline.ask(CatalogRequest()).streams}
    clicks, quick = streams["clicks"], streams["quick"]
    assert (clicks.kind, clicks.source, clicks.partitions) == ("declared", "http", 2)
    assert (clicks.id, clicks.origin) == ("event_id", "traced.sql:2")
    assert clicks.watermark is not None
    assert (clicks.watermark.column, clicks.watermark.delay_ms) == ("ts", 10_000)
    assert [(c.name, c.type) for c in clicks.columns[:3]] == [
        ("page", "STRING"), ("user", "STRING"), ("ms", "BIGINT"),
    ]  # fmt: skip
    generated = {c.name: c.generated for c in clicks.columns if c.generated}
    assert generated == {
        "twice": "2 * ms", "sound": "soundex(page)", "tool": "_raw:agent::string",
    }  # fmt: skip
    assert (quick.kind, quick.reads) == ("derived", ["clicks"])
    assert quick.sql == "SELECT page AS p, ms, ts FROM clicks WHERE ms < 50"
    assert [(c.name, c.type) for c in quick.columns] == [
        ("p", "STRING"), ("ms", "BIGINT"), ("ts", "TIMESTAMP"),
    ]  # fmt: skip


def test_the_catalog_has_views_tables_and_words(offline: Offline) -> None:
    catalog = offline.ask(CatalogRequest())
    views = {view.name: view for view in catalog.views}
    slow = views["slow"]
    assert (slow.kind, slow.stream, slow.reads) == ("mergeable", "clicks", ["clicks"])
    assert [(c.name, c.type, c.key) for c in slow.columns[:3]] == [
        ("page", "STRING", True), ("minute", "WINDOW", True), ("n", "BIGINT", False),
    ]  # fmt: skip
    (version,) = slow.versions
    assert (version.state, version.since) == ("live", [0, 0])
    assert version.live_at is not None
    assert (views["reread"].reads, views["reread"].versions) == (["slow"], [])
    (table,) = catalog.tables
    assert (table.name, table.format, table.version) == ("sections", "csv", None)
    kinds = {function.name: function.kind for function in catalog.functions}
    assert (kinds["count"], kinds["window"], kinds["upper"]) == ("aggregate", "window", "scalar")
    assert {"SELECT", "WATERMARK", "MATCH_RECOGNIZE"} <= set(catalog.keywords)


def test_epochs_and_generations_are_told_the_newest_first(offline: Offline) -> None:
    found = offline.ask(EpochsRequest())
    assert [epoch.number for epoch in found.epochs] == [2, 1]
    newest = found.epochs[0]
    assert (newest.stream, newest.lower, newest.upper) == ("clicks", [3, 1], [5, 1])
    assert (newest.events, newest.ms, newest.phases) == (2, 1_000.0, None)
    (generation,) = found.generations
    assert (generation.number, generation.boundary, generation.events) == (1, [3, 1], 4)
    assert (found.epochs_total, found.generations_total) == (2, 1)
    newest = offline.ask(EpochsRequest("clicks", 1))
    assert (len(newest.epochs), newest.epochs_total) == (1, 2)
    with pytest.raises(NotFound, match="there is no stream 'clik'"):
        offline.ask(EpochsRequest("clik"))


def test_a_views_page_says_how_fresh_it_is(offline: Offline) -> None:
    page = offline.ask(ViewDetailRequest("SLOW"))
    (fresh,) = page.freshness
    assert (fresh.position, fresh.boundary, fresh.end) == ([5, 1], [3, 1], [6, 2])
    assert (fresh.lag_events, fresh.generation) == (2, 1)
    assert fresh.lag_ms is not None
    assert page.explain.startswith("slow (traced.sql:")
    assert page.late is not None
    assert (page.late.windows, page.late.on_time, page.late.late) == (3, 3, 0)
    assert (page.reads, page.touches) == (["clicks"], ["reread"])
    assert offline.ask(ViewDetailRequest("total")).late is None
    with pytest.raises(NotFound, match="there is no view 'slo'") as caught:
        offline.ask(ViewDetailRequest("slo"))
    assert caught.value.hint == "did you mean 'slow'?"


def test_quality_counts_what_is_not_as_it_should_be(offline: Offline) -> None:
    (clicks,) = offline.ask(QualityRequest()).streams
    assert clicks.sampled == 8
    assert {bucket.up_to_ms: bucket.events for bucket in clicks.lateness if bucket.events} == {
        0: 4,
        60_000: 1,
    }
    assert [(reason.events, reason.offset) for reason in clicks.reasons] == [(1, 1), (1, 0)]
    assert clicks.reasons[0].reason.endswith("such as '2026-01-31T12:00:00Z'")
    agent, far = clicks.undeclared
    assert (agent.name, agent.events, agent.share, agent.type) == ("agent", 2, 0.4, "string")
    assert (far.name, far.type, far.example) == ("far", "number", "1e400")
    nulls = {null.column: null.share for null in clicks.nulls}
    assert (nulls["page"], nulls["user"]) == (0, 1)
    assert (nulls["twice"], nulls["tool"], "sound" in nulls) == (0, 0.6, False)
    assert (clicks.records, clicks.duplicates, clicks.balance.off) == (8, 1, 0)
    assert (clicks.taken, clicks.late) == (6, 0)


def test_undeclared_fields_beyond_the_listed_ones_are_counted(
    offline: Offline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.run.observatory.quality.FIELDS_MAX", 1)
    (clicks,) = offline.ask(QualityRequest()).streams
    assert ([field.name for field in clicks.undeclared], clicks.undeclared_total) == (["agent"], 2)


def test_dead_letters_are_as_many_as_their_reasons_add_up_to(offline: Offline) -> None:
    (clicks,) = offline.ask(QualityRequest()).streams
    assert (clicks.balance.dead_letters, clicks.balance.in_log) == (1, 4), "one is in the log"
    assert clicks.dead_letters == sum(reason.events for reason in clicks.reasons) == 2


def test_what_was_not_read_whole_is_in_the_balance_and_in_the_quality_of_its_stream(
    tmp_path: Path,
) -> None:
    made = Traced(tmp_path / "project")
    made.send(event("/a", 5))
    made.send(event("/b", 6), status=OVERLONG)
    made.send(b"", partition=1, status=DAMAGED)
    made.epoch()
    made.generation()
    service = made.offline()
    (clicks,) = service.ask(QualityRequest()).streams
    (status,) = service.status().streams
    service.close()
    made.close()
    balance = status.balance
    assert (balance.accepted, balance.events, balance.dead_letters, balance.off) == (3, 1, 2, 0)
    assert {one.reason: one.events for one in clicks.reasons} == {
        MARKED[OVERLONG]: 1,
        MARKED[DAMAGED]: 1,
    }
    assert clicks.dead_letters == 2


def test_an_event_is_followed_into_its_epoch_generation_and_rows(offline: Offline) -> None:
    first = offline.ask(EventRequest("clicks", 0, 0))
    assert first.event.id == "e1"
    assert (first.archived, first.alerts) == (True, [])
    assert first.epoch is not None
    assert first.generation is not None
    assert (first.epoch.number, first.generation.number) == (1, 1)
    rows = {one.view: one for one in first.views}
    window = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:01:00Z"}
    assert rows["slow"].key == {"page": "/a", "minute": window}
    assert rows["slow"].row == {"page": "/a", "minute": window, "n": 1, "slowest": 10}
    assert (rows["total"].key, rows["total"].row) == ({}, {"n": 4})
    assert rows["quick_pages"].row == {"page": "/a", "n": 2}
    assert rows["unnamed"].key is None
    assert rows["unnamed"].reason is not None
    assert "cannot be traced" in rows["unnamed"].reason
    assert "reread" not in rows


def test_what_an_event_does_not_count_in_is_not_told(offline: Offline) -> None:
    fourth = offline.ask(EventRequest("clicks", 0, 4))  # /z is in no section, and alone on its page
    rows = {one.view: one for one in fourth.views}
    assert "known" not in rows
    assert (rows["often"].key, rows["often"].row) == ({"page": "/z"}, None)
    second = offline.ask(EventRequest("clicks", 0, 1))  # three milliseconds are not slow
    assert "slow" not in {one.view for one in second.views}


def test_events_that_nobody_has_taken_and_records_that_are_none(offline: Offline) -> None:
    waiting = offline.ask(EventRequest("clicks", 0, 5))
    assert (waiting.epoch, waiting.generation, waiting.archived) == (None, None, False)
    duplicate = offline.ask(EventRequest("clicks", 0, 2))
    assert (duplicate.event.status, duplicate.views) == ("duplicate", [])
    with pytest.raises(NotFound, match="no event at offset 6 of partition 0"):
        offline.ask(EventRequest("clicks", 0, 6))
    with pytest.raises(NotFound, match="of partition 7"):
        offline.ask(EventRequest("clicks", 7, 0))


def test_settings_are_told_and_secrets_are_not(tmp_path: Path) -> None:
    (tmp_path / "headrace.toml").write_text(
        'name = "s"\n[notify]\nsecret = "hush-hush"\n[batch]\ninterval = "15 seconds"\n'
        '[spark.conf]\n"spark.hadoop.fs.s3a.secret.key" = "hush-hush"\n"spark.ui.port" = "1"\n'
    )
    service = Offline(load_project(tmp_path))
    system = service.ask(SystemRequest())
    service.close()
    settings = {setting.name: setting for setting in system.settings}
    assert (settings["notify.secret"].value, settings["notify.secret"].secret) == ("set", True)
    interval = settings["batch.interval"]
    assert (interval.value, interval.default, interval.changed) == ("15s", "60 seconds", True)
    assert not settings["http.port"].changed
    life = settings["access.token_life_max"]
    assert (life.value, life.secret, life.changed) == ("365 days", False, False)
    assert {name for name, said in settings.items() if said.secret} == {
        "http.tls_key", "notify.secret", "notify.secret_before",
    }  # fmt: skip
    assert "spark.ui.port = 1" in settings["spark.conf"].value
    assert "hush" not in json.dumps(msgspec.to_builtins(system))
    assert (system.spark.running, system.process.uptime_s) == (False, None)
    assert set(system.disk.parts) == {"log", "master", "store", "work"}


def test_growth_needs_some_time_and_says_how_long_the_disk_lasts(traced: Traced) -> None:
    growth = DiskGrowth()
    growth.add(0, traced.layout)
    assert growth.per_hour() is None
    traced.layout.work("run").mkdir(parents=True)
    (traced.layout.work("run") / "more").write_bytes(bytes(1_000))
    growth.add(HOUR // 2, traced.layout)
    assert growth.per_hour() == 2_000


def test_a_stopped_project_tells_nothing_live_and_one_that_never_ran_has_no_catalog(
    offline: Offline, tmp_path: Path
) -> None:
    with pytest.raises(Unavailable, match="is not running"):
        offline.live(["status"])
    (tmp_path / "headrace.toml").write_text('name = "new"\n')
    service = Offline(load_project(tmp_path))
    with pytest.raises(NotReady):
        service.ask(CatalogRequest())
    service.close()
