"""LineagePublisher on its way out: to a file, to a URL behind the fence, and never in the way."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from headrace.core.errors import BadSetting
from headrace.core.time import MILLISECOND, SECOND
from headrace.define.project import Project
from headrace.define.settings import LineageSettings, NotifySettings, Settings
from headrace.run import lineage_publisher as outlet
from headrace.run.lineage_publisher import LineagePublisher, publisher_of
from tests.serving.bench import plan_of

from .receiver import Receiver

PLAN = plan_of()
PRIVATE = NotifySettings(private=True, secret="s3cret", answer_us=300 * MILLISECOND)


def project(folder: Path, lineage: LineageSettings, notify: NotifySettings = PRIVATE) -> Project:
    return Project(folder, Settings("shop", lineage=lineage, notify=notify), ())


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.stop()


def test_a_file_has_an_event_a_line(tmp_path: Path) -> None:
    lineage = publisher_of(project(tmp_path, LineageSettings(file="lineage.ndjson")))
    lineage.publish_plan(PLAN)
    lineage.publish_build("clicks", 1_000_000)
    lineage.publish_build("clicks", 2_000_000, "it broke")
    lineage.stop()
    events = [json.loads(x) for x in (tmp_path / "out/lineage.ndjson").read_text().splitlines()]
    kinds = [event["eventType"] for event in events]
    assert kinds == ["OTHER"] * len(PLAN.shown_views) + ["START", "COMPLETE", "START", "FAIL"]
    runs = [event["run"]["runId"] for event in events]
    assert runs[-1] == runs[-2] != runs[-3] == runs[-4]
    assert events[-2]["eventTime"] == "1970-01-01T00:00:02Z"


def test_a_url_gets_each_event_with_a_key_of_its_own(tmp_path: Path, receiver: Receiver) -> None:
    patient = replace(PRIVATE, answer_us=20 * SECOND)
    lineage = publisher_of(project(tmp_path, LineageSettings(url=receiver.url), patient))
    lineage.publish_plan(PLAN)
    lineage.publish_build("clicks", 1_000_000)
    lineage.stop()
    assert len(receiver.requests) == len(PLAN.shown_views) + 2
    keys = {request["headers"]["Idempotency-Key"] for request in receiver.requests}
    assert len(keys) == len(receiver.requests)
    assert json.loads(receiver.requests[-1]["body"])["eventType"] == "COMPLETE"


def test_a_private_address_is_not_reached_unless_it_may(tmp_path: Path, receiver: Receiver) -> None:
    fenced = replace(PRIVATE, private=False)
    with capture_logs() as logs:
        lineage = publisher_of(project(tmp_path, LineageSettings(url=receiver.url), fenced))
        lineage.publish_plan(PLAN)
        lineage.stop()
    assert receiver.requests == []
    assert {line["event"] for line in logs} == {"lineage.undelivered"}


class Broken:
    batch_max = 1

    def __init__(self) -> None:
        self.calls = 0

    def deliver(self, notices: Any) -> None:
        self.calls += 1
        raise ConnectionError("the response status is 503")


def test_what_is_not_taken_is_tried_and_then_given_up() -> None:
    broken, pauses = Broken(), list[float]()
    with capture_logs() as logs:
        lineage = LineagePublisher([broken], sleep=pauses.append)
        lineage.publish_plan(PLAN)
        lineage.stop()
    assert broken.calls == 3 * len(PLAN.shown_views)
    assert pauses[:2] == [1.0, 2.0]
    assert [line["event"] for line in logs] == ["lineage.undelivered"] * len(PLAN.shown_views)


def test_a_full_queue_drops_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlet, "WAITING_MAX", 1)
    monkeypatch.setattr(outlet, "STOP_S_MAX", 0.0)
    free = threading.Event()
    with capture_logs() as logs:
        lineage = LineagePublisher([Broken()], sleep=lambda _: free.wait(10) and None)
        lineage.publish_plan(PLAN)
        assert "lineage.dropped" in {line["event"] for line in logs}
        free.set()
        lineage.stop()


def test_without_settings_nothing_is_told(tmp_path: Path) -> None:
    lineage = publisher_of(project(tmp_path, LineageSettings()))
    lineage.publish_plan(PLAN)
    lineage.publish_build("clicks", 0)
    assert lineage._waiting.empty()
    lineage.stop()


def test_what_is_no_url_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="is not a URL: 'marquez'"):
        publisher_of(project(tmp_path, LineageSettings(url="marquez")))
