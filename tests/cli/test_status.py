"""The status page, and its document."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from typer.testing import Result

from headrace.api.resources.balance import Balance
from headrace.api.resources.status import IdlePartition, ProjectStatus, SinkStatus, TableStatus
from headrace.core.problems import Problem
from headrace.serving.watches import WatchCounts

from .conftest import STATUS, Told, document


def test_the_page_shows_state_streams_balance_and_views(
    told: Told, call: Callable[..., Result]
) -> None:
    result = call("status")
    assert result.exit_code == 0
    assert [line.rstrip() for line in result.stdout.splitlines()] == [
        "shop: running at http://127.0.0.1:8080 since 2026-11-15 18:59 UTC",
        "",
        "stream  source  log end  lag  watermark            generation  late",
        "clicks  http    603,600   10  2026-11-15 19:04:30           3     7",
        "",
        "clicks: watermark 1.58m behind the clock, held back by partition 1; "
        "idle: partition 0 since 2026-11-15 19:01:30 UTC",
        "clicks: accepted 1,203 = events 1,180 + duplicates 12 + dead letters 11 + in log 0 "
        "(off by 0)",
        "",
        "view      kind       state     stream  rows  generation  last audit",
        "visitors  mergeable  live      clicks    42           3  no difference",
        "fresh     mergeable  building  clicks     0           0  none yet",
        "busiest   read       read",
    ]


def test_moments_are_told_to_the_second(told: Told, call: Callable[..., Result]) -> None:
    stream = msgspec.structs.replace(
        STATUS.streams[0],
        watermark="2026-11-15T19:04:30.123456Z",
        idle=[IdlePartition(0, "2026-11-15T19:01:30.000001Z")],
    )
    loaded = TableStatus("sections", "v1", "2026-11-15T19:01:31.5Z")
    began = "2026-11-15T18:59:01.654321Z"
    told.found = msgspec.structs.replace(
        STATUS, started_at=began, streams=[stream], tables=[loaded]
    )
    said = call("status").stdout
    for moment in ("18:59:01 UTC", "19:04:30  ", "19:01:30 UTC", "19:01:31"):
        assert f" {moment}" in said
    assert not {".123456", ".000001", ".5", ".654321"} & {word[-7:] for word in said.split()}
    assert "19:01:31.5" not in said


def test_json_says_also_what_each_balance_is_off_by(
    told: Told, call: Callable[..., Result]
) -> None:
    stream = msgspec.structs.replace(STATUS.streams[0], balance=Balance(10, 5, 1, 1, 1))
    told.found = msgspec.structs.replace(STATUS, streams=[stream])
    said = document(call("status", "--json"))
    assert said["streams"][0]["balance"]["off"] == 2
    assert said["views"][0]["name"] == "visitors"
    assert said["url"] == "http://127.0.0.1:8080"


def test_a_problem_and_a_reason_are_shown(told: Told, call: Callable[..., Result]) -> None:
    problems = [
        Problem("log", "clicks", "balance", "the disk is full"),
        Problem("speed", "clicks", "waiting", "events of 'clicks' have waited for speed", "warn"),
    ]
    told.found = ProjectStatus(
        "shop", "degraded", "the disk is full", None, None, [], [], problems=problems
    )
    lines = call("status").stdout.splitlines()
    assert lines == [
        "shop: degraded",
        "problem: the disk is full",
        "warning: events of 'clicks' have waited for speed",
    ]
    told.found = ProjectStatus("shop", "starting", "Spark is starting", None, None, [], [])
    assert call("status").stdout.splitlines() == ["shop: starting (Spark is starting)"]


def test_event_time_may_be_ahead_of_the_clock_and_one_partition_holds_nothing_back(
    told: Told, call: Callable[..., Result]
) -> None:
    stream = msgspec.structs.replace(
        STATUS.streams[0], end=[7], watermark_gap_ms=-2_000, watermark_held_by=0, idle=[]
    )
    told.found = msgspec.structs.replace(STATUS, streams=[stream])
    lines = [line.rstrip() for line in call("status").stdout.splitlines()]
    assert "clicks: watermark 2s ahead of the clock" in lines


def test_json_says_which_partitions_decide_on_the_watermark(
    told: Told, call: Callable[..., Result]
) -> None:
    (stream,) = document(call("status", "--json"))["streams"]
    assert (stream["watermark_gap_ms"], stream["watermark_held_by"]) == (95_000, 1)
    assert stream["idle"] == [{"partition": 0, "since": "2026-11-15T19:01:30Z"}]


def test_a_stopped_project_says_so(shop: object, call: Callable[..., Result]) -> None:
    result = call("status", "--json")
    assert result.exit_code == 0
    assert document(result)["state"] == "stopped"


def test_what_speed_has_passed_over_is_told(told: Told, call: Callable[..., Result]) -> None:
    assert "passed over" not in call("status").stdout
    stream = msgspec.structs.replace(STATUS.streams[0], shed=1203)
    told.found = msgspec.structs.replace(STATUS, streams=[stream])
    assert "clicks: speed has skipped 1,203 events\n" in call("status").stdout


def test_sinks_are_shown_with_how_far_they_are(told: Told, call: Callable[..., Result]) -> None:
    sink = SinkStatus("hourly", "visitors", "file out/x.jsonl", "exactly_once", 1204, 1203, 1, 7)
    told.found = msgspec.structs.replace(STATUS, sinks=[sink])
    lines = [line.split() for line in call("status").stdout.splitlines() if line.strip()]
    assert [
        "hourly", "visitors", "file", "out/x.jsonl", "exactly_once", "1,203", "1", "7",
    ] in lines  # fmt: skip


def test_watches_are_shown_in_numbers_with_what_is_wrong(
    told: Told, call: Callable[..., Result]
) -> None:
    assert "watches" not in call("status").stdout
    numbers = WatchCounts(9_998, 2, 1204, 3, 1, ["ending expired watches failed: it is full"])
    told.found = msgspec.structs.replace(STATUS, watches=numbers)
    lines = [line.split() for line in call("status").stdout.splitlines() if line.strip()]
    assert ["live", "ended", "matches", "waiting", "failed"] in lines
    assert ["watches", "9,998", "2", "1,204", "3", "1"] in lines
    assert ["ending", "expired", "watches", "failed:", "it", "is", "full"] in lines
