"""Where a row comes from, and how it came about, as a person reads it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from typer.testing import Result

from headrace.api.resources.rows import WhyRequest
from headrace.audit.trace import Replay, ReplayStep, SkippedRecords, TracedRecord, Why

from .conftest import ANSWER, Told, document

HOUR = {"start": "2026-11-15T19:00:00Z", "end": "2026-11-15T20:00:00Z"}
KEY = {"url": "/home", "hour": HOUR}
RAW = '{"url": "/home"}'
EVENT = TracedRecord("clicks", 0, 7, "2026-11-15T19:00:05Z", "2026-11-15T19:00:06Z", RAW, True)
LETTER = TracedRecord(
    "clicks", 1, 9, None, "2026-11-15T19:00:07Z", "/home [oops]", False, "not JSON"
)
WHY = Why(
    "visitors",
    KEY,
    KEY | {"hits": 2},
    2,
    [EVENT],
    [SkippedRecords("dead letter", 1, [LETTER]), SkippedRecords("counts in other rows", 1203, [])],
    True,
    "recomputed from these 2 events, the row is the same",
    ANSWER.as_of,
)
REPLAY = Replay(
    "visitors",
    KEY,
    KEY | {"hits": 2},
    [
        ReplayStep("epoch", 41, "2026-11-15T19:00:07Z", [8, 9], [5, 5], 3, 1, 2, None),
        ReplayStep(
            "generation", 4, "2026-11-15T19:01:00Z", [8, 9], [8, 9], 3, 1, 2, KEY | {"hits": 2}
        ),
    ],
    1,
    True,
    "recomputed from these 2 events, the row is the same",
    ANSWER.as_of,
)


def lines(result: Result) -> list[str]:
    return [line.rstrip() for line in result.stdout.splitlines()]


def test_why_lists_the_events_and_those_left_out(told: Told, call: Callable[..., Result]) -> None:
    told.reason = WHY
    result = call(
        "why", "visitors", "--where", "url=/home=x", "--window", HOUR["start"], "--limit", "1"
    )
    assert told.asked == [WhyRequest("visitors", {"url": "/home=x"}, window=HOUR["start"], limit=1)]
    assert result.exit_code == 0
    assert lines(result) == [
        "visitors: url /home, hour 2026-11-15 19:00 – 20:00, hits 2",
        "behind it: 2 events (1 not listed)",
        "partition  offset  event time           arrived                    raw",
        '        0       7  2026-11-15 19:00:05  2026-11-15 19:00:06  late  {"url": "/home"}',
        "",
        "left out: 1 event, dead letter",
        "partition  offset  event time  arrived                        raw",
        "        1       9  none        2026-11-15 19:00:07  not JSON  /home [oops]",
        "",
        "left out: 1,203 events, counts in other rows",
        "",
        "recomputed from these 2 events, the row is the same",
    ]


def test_replay_shows_each_step_with_the_row_after_it(
    told: Told, call: Callable[..., Result]
) -> None:
    told.story = REPLAY
    assert lines(call("replay", "visitors", "--where", "url=/home")) == [
        "visitors: url /home, hour 2026-11-15 19:00 – 20:00, hits 2",
        "1 earlier step",
        "step          at                   position  events  late  shed  row after it",
        "epoch 41      2026-11-15 19:00:07  8,9            3     1     2  no such row yet",
        "generation 4  2026-11-15 19:01     8,9            3     1     2  hits 2",
        "",
        "recomputed from these 2 events, the row is the same",
    ]


def test_a_row_that_cannot_be_made_again_exits_with_1(
    told: Told, call: Callable[..., Result]
) -> None:
    wrong = msgspec.structs.replace(WHY, agrees=False, sentence="no: hits is 3", row=None)
    told.reason = wrong
    result = call("why", "visitors")
    assert result.exit_code == 1
    assert lines(result)[0] == "visitors: there is no such row"
    said = document(call("why", "visitors", "--json"))
    assert (said["agrees"], said["events"], said["key"]["hour"]) == (False, 2, HOUR)


def test_a_key_without_a_value_or_given_twice_is_wrong_usage(
    told: Told, call: Callable[..., Result]
) -> None:
    for where in (["--where", "url"], ["--where", "url=1", "--where", "url=2"]):
        result = call("why", "visitors", *where)
        assert result.exit_code == 2
        assert "expected KEY=VALUE with each key once" in result.output
