"""What is in the log is in the master: every byte of every record, what became of it, and whether
it was late; by a real Spark job, whatever the size of its steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headrace.core.event import EventStatus
from headrace.core.meters import REGISTRY
from headrace.core.position import Position
from headrace.core.time import DAY
from headrace.log import interval

from .bench import Bench, InProcess, click

STRANGE = [
    b'{"user": "\xff"}',
    b"\x00",
    b'  {"user" :"ann",  "ms": 1}  ',
    '{"user": "日本😀", "ms": null}'.encode(),
    b'{"user": null}',
    b'{"user": "a", "ms": 99999999999999999999}',
    b'{"user": "a"' + b" " * 5_000 + b"}",
]


@pytest.fixture(scope="module")
def archived(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Two partitions, two days, every status, late events, and bytes that nobody can read."""
    bench = Bench(tmp_path_factory.mktemp("archive"), spark)
    bench.send(0, click("ann", 100), click("bob", 85), click("cid", 95), click("dan", 90))
    bench.send(1, click("eve", 0), click("fay", -3_600))
    bench.archive.step(100)
    bench.clock.now_us += DAY
    bench.send(0, click("gil", 89), *STRANGE)
    bench.send(0, click("ann", 100), status=EventStatus.DUPLICATE)
    bench.send(1, click("eve", 1, ms=2), status=EventStatus.DEAD_LETTER)
    bench.archive.step_to_end(100)
    yield bench
    bench.topic.close()


def test_every_record_is_there_with_its_bytes_and_its_place(archived: Bench) -> None:
    places = [(row["_partition"], row["_offset"]) for row in archived.rows()]
    assert places == [(0, n) for n in range(13)] + [(1, n) for n in range(3)]
    raw = [row["_raw"] for row in archived.rows()]
    assert raw[5:12] == STRANGE
    assert raw[0] == raw[12] == click("ann", 100)
    assert archived.table.newest().position == Position((13, 3)) == archived.topic.end()


def test_each_record_has_the_status_that_it_deserves(archived: Bench) -> None:
    events = [True] * 5 + [False, False, True, True, False, False, True]
    words = ["event" if good else "dead_letter" for good in events] + ["duplicate"]
    words += ["event", "event", "dead_letter"]
    assert [row["_status"] for row in archived.rows()] == words
    for row in archived.rows():
        assert bool(row["_reason"]) == (row["_status"] == "dead_letter"), row


def test_dead_letters_are_counted_by_kind(archived: Bench) -> None:
    kinds = ("not_json", "null", "out_of_range", "conflict")
    labels = [{"stream": archived.archive.stream.name, "reason": kind} for kind in kinds]
    found = [REGISTRY.get_sample_value("headrace_dead_letters_total", each) for each in labels]
    assert all(found)


def test_events_are_typed_columns(archived: Bench) -> None:
    rows = archived.rows()
    assert rows[0]["ts"] == datetime(2026, 1, 1, 0, 1, 40, tzinfo=UTC)
    assert (rows[7]["user"], rows[7]["ms"]) == ("ann", 1)
    assert (rows[8]["user"], rows[8]["ms"]) == ("日本😀", None)


def test_lateness_goes_on_from_one_step_to_the_next(archived: Bench) -> None:
    late = [row["user"] for row in archived.rows() if row["_late"]]
    # 85 < 100 - 10; 90 is not before 90; 89 came a step later, when 100 was the highest still.
    assert late == ["bob", "gil", "fay"]


def test_files_lie_by_status_and_day_of_arrival(archived: Bench) -> None:
    found: Counter[tuple[str, str]] = Counter()
    for file in archived.table.newest().files:
        found[file.status, file.day] += file.rows
    assert found == {
        ("event", "2026-01-01"): 6,
        ("event", "2026-01-02"): 4,
        ("dead_letter", "2026-01-02"): 5,
        ("duplicate", "2026-01-02"): 1,
    }
    days = {(row["_day"], row["_arrived_at"].date().isoformat()) for row in archived.rows()}
    assert days == {("2026-01-01", "2026-01-01"), ("2026-01-02", "2026-01-02")}


@pytest.mark.parametrize("step", [1, 2, 5])
def test_the_size_of_steps_and_chunks_changes_nothing(
    tmp_path: Path, archived: Bench, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interval, "PART_EVENTS", step)
    bench = Bench(tmp_path, InProcess())
    for row in archived.rows():
        bench.clock.now_us = int(row["_arrived_at"].timestamp()) * 1_000_000
        written = EventStatus[row["_status"].upper()]
        status = EventStatus.EVENT if row["_raw"] in STRANGE else written
        bench.send(row["_partition"], row["_raw"], status=status)
    bench.archive.step_to_end(step)
    assert bench.rows() == archived.rows()
    found, expected = bench.table.newest(), archived.table.newest()
    assert (found.position, found.highs) == (expected.position, expected.highs)
    bench.topic.close()


def test_what_arrives_while_the_archive_runs_is_left_for_the_next_step(bench: Bench) -> None:
    bench.send(0, click("ann"), click("bob"))
    step = bench.archive.step

    def slow(events_max: int) -> int:
        done = step(events_max)
        bench.send(0, click("more"))
        return done

    bench.archive.step = slow  # type: ignore[method-assign]
    assert bench.archive.step_to_end(1) == Position((2, 0))
    assert bench.topic.end() == Position((4, 0))
