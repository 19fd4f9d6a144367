"""Panes and alerts as events of a stream."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from headrace.core.errors import Conflict
from headrace.destination.protocol import Message
from headrace.destination.stream import StreamDestination, StreamWriter
from headrace.ingest.intake import Receipt

ALERT = {
    "id": "abc", "rule": "slow", "severity": "high", "event_time": "2026-01-01T00:00:05Z",
    "raised_at": "2026-01-01T00:00:06Z", "raised_by": "speed",
    "body": {"user": "ann", "hour": {"start": "0", "end": "1"}},
}  # fmt: skip
SAID = {"key": "abc", "kind": "raised", "rule": "slow", "severity": "high", "alerts": [ALERT]}
PANE = {
    "sequence": 7, "op": "insert", "timing": "late", "last": True, "pane": 2,
    "row": {"page": "/a", "n": 3},
}  # fmt: skip


def events(message: Message, id: str | None = "event_id") -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []

    def submit(stream: str, encoded: Sequence[bytes]) -> Future[Receipt]:
        sent.extend({"to": stream, **json.loads(event)} for event in encoded)
        return receipt()

    StreamWriter(StreamDestination("told", id), submit).deliver([message])
    return sent


def receipt(conflicts: int = 0) -> Future[Receipt]:
    done: Future[Receipt] = Future()
    done.set_result(Receipt(1, 0, conflicts, ()))
    return done


def message(key: str, said: dict[str, Any]) -> Message:
    return Message(1, key, json.dumps(said).encode())


@pytest.mark.parametrize("id", ["event_id", None])
def test_a_pane_is_its_row_and_what_is_said_of_it(id: str | None) -> None:
    (event,) = events(message("s:0a1b:7", PANE), id)
    assert event.pop("event_id", None) == ("s:0a1b:7" if id else None)
    assert event == {
        "to": "told", "page": "/a", "n": 3, "pane_op": "insert", "pane_timing": "late",
        "pane_last": True, "pane_index": 2, "pane_sequence": 7,
    }  # fmt: skip


@pytest.mark.parametrize(("kind", "id"), [("missed", "abc"), ("withdrawn", "abc:withdrawn")])
def test_an_alert_is_its_row_and_what_is_said_of_it(kind: str, id: str) -> None:
    (event,) = events(message("key", SAID | {"kind": kind}))
    assert event == {
        "to": "told", "event_id": id, "alert_id": "abc", "alert_rule": "slow",
        "alert_severity": "high", "alert_kind": kind, "alert_raised_by": "speed",
        "alert_event_time": "2026-01-01T00:00:05Z", "alert_raised_at": "2026-01-01T00:00:06Z",
        "user": "ann", "hour_start": "0", "hour_end": "1",
    }  # fmt: skip


def test_a_watch_ends_with_an_event_that_has_no_row() -> None:
    ended = {
        "kind": "ended",
        "key": "k:ended",
        "alerts": [],
        "why": "it is over",
        "ended_at": "now",
    }
    assert events(message("k:ended", SAID | ended | {"ended_at": "now"})) == [
        {
            "to": "told", "event_id": "k:ended", "alert_id": "k:ended", "alert_rule": "slow",
            "alert_severity": "high", "alert_event_time": "now", "alert_raised_at": "now",
            "alert_raised_by": "watch", "alert_kind": "ended", "alert_why": "it is over",
        }
    ]  # fmt: skip


def test_an_id_that_another_event_has_is_a_conflict() -> None:
    writer = StreamWriter(StreamDestination("told", "event_id"), lambda *_: receipt(conflicts=1))
    sentence = "stream 'told' already has other events with the ids of 1 panes"
    with pytest.raises(Conflict, match=sentence):
        writer.deliver([message("s:0a1b:7", PANE)])
