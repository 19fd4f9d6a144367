"""`headrace tail`: the text of its options, and a line for each thing heard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace.cli import tail as body
from headrace.core.subscription import subscription
from headrace.serving.subscriber import SubscriptionEvent

PANE = {
    "sequence": 8, "view": "hits", "op": "insert", "key": {"page": "/a"}, "window": None,
    "pane": 0, "timing": "on_time", "last": True, "row": {"page": "/a", "n": 3},
}  # fmt: skip
EVENTS = [
    SubscriptionEvent("relation", {"rows": [{"page": "/b", "n": 1}]}, "7"),
    SubscriptionEvent("pane", PANE, "8"),
    SubscriptionEvent("pane", PANE | {"op": "delete", "timing": "late", "last": False}, "9"),
    SubscriptionEvent("end", {"reason": "the project is shutting down"}),
]
ROWS = [
    SubscriptionEvent("position", {}, "3,4"),
    SubscriptionEvent(
        "rows",
        {"rows": [{"user": "ann", "ms": 910}, {"user": "bob", "ms": None}], "ends": ["4,4", "5,4"]},
        "5,4",
    ),
    SubscriptionEvent("position", {}, "5,9"),
    SubscriptionEvent("rows", {"rows": [{"user": "cid", "ms": 1}], "ends": ["6,9"]}, "6,9"),
]


class OpenSubscription:
    """Gives one event at a time."""

    def __init__(self, events: list[SubscriptionEvent]) -> None:
        self.events, self.ended, self.closed = list(events), False, False

    def poll(self, seconds: float = 0.0) -> list[SubscriptionEvent]:
        self.ended = len(self.events) == 1
        return [self.events.pop(0)]

    def close(self) -> None:
        self.closed = True


class Service:
    def __init__(self, hearing: OpenSubscription) -> None:
        self.hearing, self.asked = hearing, []  # type: ignore[var-annotated]

    def subscribe(self, text: str, after: str | None = None) -> OpenSubscription:
        self.asked.append((text, after))
        return self.hearing


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    from contextlib import nullcontext

    made = Service(OpenSubscription(EVENTS))
    monkeypatch.setattr(body, "open_service", lambda folder: nullcontext(made))
    return made


def told(capsys: pytest.CaptureFixture[str], **said: Any) -> tuple[int, list[str]]:
    options = {"after": None, "limit": None, "json": False} | said
    code = body.tail(Path(), "SUBSCRIBE TO hits", **options)
    return code, [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_each_thing_heard_is_a_line(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys) == (
        0,
        [
            "page=/b  n=1",
            "on_time + page=/a  n=3  last",
            "late    - page=/a  n=3",
            "the project is shutting down",
            "resume with --after 9",
        ],
    )
    assert service.hearing.closed


def test_each_row_of_a_stream_is_a_line(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    service.hearing.events = list(ROWS)
    assert told(capsys) == (
        0,
        [
            "user=ann  ms=910",
            "user=bob  ms=null",
            "user=cid  ms=1",
            "resume with --after 6,9",
        ],
    )


@pytest.mark.parametrize(
    ("limit", "lines", "after"),
    [(1, 1, "4,4"), (2, 2, "5,4"), (3, 3, "6,9")],
)
def test_limit_counts_rows_and_the_next_tail_continues_with_the_row_after_them(
    service: Service, capsys: pytest.CaptureFixture[str], limit: int, lines: int, after: str
) -> None:
    service.hearing.events = list(ROWS)
    _, shown = told(capsys, limit=limit)
    assert (len(shown), shown[-1]) == (lines + 1, f"resume with --after {after}")


def test_the_rows_of_one_event_are_not_cut_because_there_is_no_position_between_them(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, ends = [{"n": n} for n in range(4)], ["1,0", "2,0", "2,0", "3,0"]
    service.hearing.events = [SubscriptionEvent("rows", {"rows": rows, "ends": ends}, "3,0")]
    assert told(capsys, limit=2)[1] == ["n=0", "n=1", "n=2", "resume with --after 2,0"]


def test_it_says_how_to_go_on_when_it_is_interrupted(
    service: Service, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(seconds: float = 0.0) -> list[SubscriptionEvent]:
        if len(service.hearing.events) == 3:
            raise KeyboardInterrupt
        return [service.hearing.events.pop(0)]

    service.hearing.events = list(ROWS)
    monkeypatch.setattr(service.hearing, "poll", interrupted)
    with pytest.raises(KeyboardInterrupt):
        told(capsys)
    assert capsys.readouterr().out.strip() == "resume with --after 3,4"
    assert service.hearing.closed


def test_json_is_one_document_a_line(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = told(capsys, json=True, after="3")
    assert [json.loads(line)["event"] for line in lines] == ["relation", "pane", "pane", "end"]
    assert (code, service.asked) == (0, [("SUBSCRIBE TO hits", "3")])


def test_limit_counts_panes(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(capsys, limit=1)[1]
    assert lines == ["page=/b  n=1", "on_time + page=/a  n=3  last", "resume with --after 8"]


def test_failure_is_an_exit_code(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    failed = SubscriptionEvent("failed", {"condition": "LimitReached", "message": "too many rows"})
    service.hearing.events = [failed, failed]
    assert told(capsys) == (1, ["too many rows"])


def test_options_become_one_text() -> None:
    assert subscription("hits", None, None) == "SUBSCRIBE TO hits"
    assert subscription("hits", "n = 1", "INSERTS") == (
        "SUBSCRIBE TO hits WHERE n = 1 EMIT INSERTS"
    )


def test_a_whole_subscription_stays_as_it_is() -> None:
    text = "SUBSCRIBE TO clicks WHERE ms > 900"
    assert subscription(text, None, None) == text
