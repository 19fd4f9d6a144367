"""`headrace tail`: the text of its options, and a line for each thing heard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace.cli import tail as body
from headrace.core.subscription import subscription
from headrace.serving.feed import Heard

PANE = {
    "sequence": 8, "view": "hits", "op": "insert", "key": {"page": "/a"}, "window": None,
    "pane": 0, "timing": "on_time", "last": True, "row": {"page": "/a", "n": 3},
}  # fmt: skip
EVENTS = [
    Heard("relation", {"rows": [{"page": "/b", "n": 1}]}, 7),
    Heard("pane", PANE, 8),
    Heard("pane", PANE | {"op": "delete", "timing": "late", "last": False}, 9),
    Heard("end", {"reason": "the project is stopping"}),
]


class Hearing:
    """Gives one event at a time."""

    def __init__(self, events: list[Heard]) -> None:
        self.events, self.ended, self.closed = list(events), False, False

    def take(self, seconds: float = 0.0) -> list[Heard]:
        self.ended = len(self.events) == 1
        return [self.events.pop(0)]

    def close(self) -> None:
        self.closed = True


class Service:
    def __init__(self, hearing: Hearing) -> None:
        self.hearing, self.asked = hearing, []  # type: ignore[var-annotated]

    def subscribe(self, text: str, after: int | None = None) -> Hearing:
        self.asked.append((text, after))
        return self.hearing


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    from contextlib import nullcontext

    made = Service(Hearing(EVENTS))
    monkeypatch.setattr(body, "loaded", lambda folder: None)
    monkeypatch.setattr(body, "connected", lambda project: nullcontext(made))
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
            "the project is stopping",
        ],
    )
    assert service.hearing.closed


def test_json_is_one_document_a_line(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = told(capsys, json=True, after=3)
    assert [json.loads(line)["event"] for line in lines] == ["relation", "pane", "pane", "end"]
    assert (code, service.asked) == (0, [("SUBSCRIBE TO hits", 3)])


def test_limit_counts_panes(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(told(capsys, limit=1)[1]) == 2


def test_failure_is_an_exit_code(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    failed = Heard("failed", {"condition": "LimitReached", "message": "too many rows"})
    service.hearing.events = [failed, failed]
    assert told(capsys) == (1, ["too many rows"])


def test_options_become_one_text() -> None:
    assert subscription("hits", None, None) == "SUBSCRIBE TO hits"
    assert subscription("hits", "n = 1", "INSERTS") == (
        "SUBSCRIBE TO hits WHERE n = 1 EMIT INSERTS"
    )
