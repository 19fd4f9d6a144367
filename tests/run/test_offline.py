"""Each method of `Service` of a stopped project."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from serving.bench import CLICKS, DEFINITIONS, plan_of
from tampered import change_rows

from headrace.api.resources.dead_letters import DeadLettersRequest
from headrace.api.resources.rows import LateRequest, ViewRequest
from headrace.api.resources.view_detail import ViewDetailRequest
from headrace.api.service import RebuildResult
from headrace.core.errors import AlreadyRunning, NotFound, NotReady
from headrace.core.position import Position
from headrace.define.layout import Layout
from headrace.define.project import Project, load_project
from headrace.run import pipelines as once
from headrace.run.compiling import compile_with
from headrace.run.lock import RunLock
from headrace.run.offline import Offline
from headrace.serving.runs import Layer

from .stopped import OLD_MARKS, SETTINGS, cut_power, make_stopped


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_stopped(tmp_path / "project")


@pytest.fixture
def offline(project: Project) -> Iterator[Offline]:
    service = Offline(project)
    yield service
    service.close()


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Offline]:
    """A project that never ran."""
    (tmp_path / "headrace.toml").write_text(SETTINGS)
    (tmp_path / "bench.sql").write_text(DEFINITIONS)
    service = Offline(load_project(tmp_path))
    yield service
    service.close()


def test_view_answers_from_the_store(offline: Offline) -> None:
    answer = offline.ask(ViewRequest("total"))
    assert answer.rows == [{"n": 6, "slowest": 12, "last": "2026-01-01T00:01:12Z"}]
    assert answer.as_of["clicks"].position == [3, 3]
    assert [row["n"] for row in offline.ask(ViewRequest("top", {"page": "/a"})).rows] == [3]


def test_sql_over_views_needs_no_spark(offline: Offline) -> None:
    answer = offline.sql("SELECT page, hits FROM pages WHERE hits > 1", 5)
    assert answer.rows == [{"page": "/a", "hits": 3}]
    assert offline.query_service.pool.processes == 0


def test_status_tells_how_far_everything_has_come(offline: Offline) -> None:
    status = offline.status()
    assert (status.name, status.state, status.reason) == (
        "stopped",
        "stopped",
        "the project is not running",
    )
    (stream,) = status.streams
    assert (stream.end, stream.position, stream.archived) == ([5, 5], [3, 3], [3, 3])
    assert (stream.boundary, stream.generation, stream.lag_events) == ([3, 1], 1, 4)
    assert (stream.source, stream.watermark) == ("http", "2026-01-01T00:01:00Z")
    assert (stream.watermark_held_by, stream.idle) == (0, [])
    assert stream.watermark_gap_ms is not None
    assert stream.watermark_gap_ms > 0
    balance = stream.balance
    assert (balance.accepted, balance.events, balance.in_log, balance.off) == (10, 6, 4, 0)
    views = {view.name: (view.kind, view.state, view.rows) for view in status.views}
    assert views == {
        "hits": ("mergeable", "live", 5),
        "users": ("mergeable", "live", 4),
        "total": ("mergeable", "live", 1),
        "top": ("mergeable", "live", 4),
        "pages": ("read", "read", 0),
    }


def test_lateness_is_told_from_the_store(offline: Offline) -> None:
    found = offline.ask(LateRequest("hits", {"page": "/a"}, since="2026-01-01T00:01:00Z"))
    assert [(w.key["page"], w.on_time, w.late) for w in found.windows] == [("/a", 2, 0)]
    assert found.as_of["clicks"].position == [3, 3]


def test_ready_says_that_it_does_not_run(offline: Offline) -> None:
    assert offline.ready() == (False, "the project is not running")


def test_dead_letters_are_shown_as_text_with_their_reason(offline: Offline) -> None:
    (letter,) = offline.ask(DeadLettersRequest("CLICKS")).dead_letters
    assert (letter.partition, letter.offset) == (1, 3)
    assert (letter.raw, letter.arrived_at) == ("not \\xff json", "2026-01-01T00:10:05Z")
    assert letter.reason
    with pytest.raises(NotFound) as caught:
        offline.ask(DeadLettersRequest("clik"))
    assert (caught.value.message, caught.value.hint) == (
        "there is no stream 'clik'",
        "available streams: clicks.",
    )


def test_audit_compares_every_view_with_a_second_engine(offline: Offline) -> None:
    audits = {audit.view: audit for audit in offline.audit()}
    assert set(audits) == {"hits", "users", "total", "top"}
    assert [audit for audit in audits.values() if audit.differences] == []
    assert audits["hits"].compared == 5
    assert [audit.view for audit in offline.audit("pages")] == ["hits"]
    with pytest.raises(NotFound, match="there is no view or rule 'elsewhere' to compare"):
        offline.audit("elsewhere")


def test_audit_finds_a_wrong_answer(offline: Offline) -> None:
    offline.store.take_over()
    plan = offline.store.deployed()
    total = plan.view("total") if plan else None
    assert total is not None
    change_rows(offline.store, total, Layer.GENERATION, "UPDATE rows SET p0 = p0 + 1")
    (audit,) = offline.audit("total")
    assert audit.differences == 1


def test_metrics_are_those_of_the_status(offline: Offline) -> None:
    text = offline.metrics().decode()
    assert "headrace_running 0.0" in text
    assert 'headrace_stream_lag_events{stream="clicks"} 4.0' in text
    assert 'headrace_stream_balance_off_events{stream="clicks"} 0.0' in text
    assert 'headrace_view_rows{view="hits"} 5.0' in text


def test_submit_appends_to_the_log_and_holds_the_lock(offline: Offline, project: Project) -> None:
    receipt = offline.submit("Clicks", [CLICKS[0].record, CLICKS[1].record]).result(10)
    assert receipt.accepted == 2
    assert sum(offline.status().streams[0].end) == 12
    with pytest.raises(AlreadyRunning):
        RunLock(Layout.of(project)).acquire()
    with pytest.raises(NotFound, match="there is no stream 'nothing'"):
        offline.submit("nothing", [b"{}"])
    offline.close()
    lock = RunLock(Layout.of(project))
    lock.acquire()
    lock.release()


def test_questions_take_no_lock(offline: Offline, project: Project) -> None:
    lock = RunLock(Layout.of(project))
    lock.acquire()
    assert offline.ask(ViewRequest("total")).rows
    assert offline.status().streams
    with pytest.raises(AlreadyRunning):
        offline.submit("clicks", [b"{}"])
    with pytest.raises(AlreadyRunning):
        offline.rebuild("total")
    lock.release()


def test_a_project_that_never_ran_can_take_events_and_says_that_it_has_no_answers(
    empty: Offline,
) -> None:
    assert empty.status().streams == []
    assert empty.submit("clicks", [json.dumps({"page": "/a"}).encode()]).result(10).accepted == 1
    for ask in (
        lambda: empty.sql("SELECT * FROM hits"),
        lambda: empty.audit(),
        lambda: empty.ask(DeadLettersRequest("clicks")),
    ):
        with pytest.raises(NotReady, match="nothing is deployed yet"):
            ask()


def test_the_end_of_the_log_and_the_balance_of_a_status_are_of_one_moment(
    offline: Offline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each read of the log's end finds one more event."""
    ends = (Position((5, 5 + more)) for more in range(100))
    growing: Any = SimpleNamespace(end=lambda: next(ends))
    monkeypatch.setattr(offline, "log_reader", lambda stream: growing)
    (stream,) = offline.stream_statuses(offline.deployed(), ())
    assert stream.balance.accepted == sum(stream.end)
    assert stream.balance.in_log == sum(stream.end) - sum(stream.archived)


def test_the_lag_of_a_view_and_its_wait_are_of_one_moment(
    offline: Offline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log's end is speed's position at first, and later after it."""
    log, ends = offline.log_reader(offline.stream_plan("clicks")), iter([Position((3, 3))])
    growing: Any = SimpleNamespace(blocks=log.blocks, end=lambda: next(ends, log.end()))
    monkeypatch.setattr(offline, "log_reader", lambda stream: growing)
    (freshness,) = offline.ask(ViewDetailRequest("total")).freshness
    assert (freshness.lag_events, freshness.lag_ms) == (0, 0)


@pytest.mark.parametrize("mark", OLD_MARKS)
def test_a_rebuild_after_a_power_cut_reads_the_whole_log(
    offline: Offline, project: Project, monkeypatch: pytest.MonkeyPatch, mark: bytes
) -> None:
    cut_power(project, mark)
    monkeypatch.setattr(once, "rebuild_once", lambda service, view: service.log_end("clicks"))
    end: Any = offline.rebuild("total")
    assert end.offsets == (5, 5)


def test_rebuild_computes_a_view_from_the_whole_history(
    spark: Any, offline: Offline, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The plan that tests make without Spark is the one that is made with it.
    assert compile_with(spark, project).views == plan_of().views

    @contextmanager
    def shared(*_: object) -> Iterator[Any]:
        yield spark

    monkeypatch.setattr(once, "session", shared)
    found = offline.rebuild("total")
    assert found == RebuildResult("total", generation=2, rows=1, differences=1)
    assert offline.ask(ViewRequest("total")).rows == [
        {"n": 8, "slowest": 99, "last": "2026-01-01T00:02:10Z"}
    ]
    assert sum(row["n"] for row in offline.ask(ViewRequest("hits")).rows) == 8
    balance = offline.status().streams[0].balance
    assert (balance.dead_letters, balance.duplicates, balance.in_log, balance.off) == (1, 1, 0, 0)
    with pytest.raises(NotFound, match="there is no materialized view 'pages'"):
        offline.rebuild("pages")
