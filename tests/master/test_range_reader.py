"""A range of events is the same wherever its events are now, and however it is cut."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace.compile.plan import ColumnPlan
from headrace.core.event import Status
from headrace.core.position import Position, PositionRange
from headrace.master.archive import Archive
from headrace.master.range_reader import RangeReader
from headrace.master.table import MasterTable

from .bench import CLICKS, Bench, InProcess, click

WHOLE = PositionRange(Position((0, 0)), Position((7, 3)))


@pytest.fixture
def filled(bench: Bench) -> Bench:
    """Ten records: late ones, a duplicate and a dead letter among them."""
    bench.send(0, click("ann", 100), click("bob", 5), click("cid", 101))
    bench.send(0, b"not json", click("dan", 6))
    bench.send(0, click("ann", 100), status=Status.DUPLICATE)
    bench.send(0, click("eve", 102))
    bench.send(1, click("fay", 10), click("gus", 200), click("hal", 20))
    return bench


def range_reader(bench: Bench) -> RangeReader:
    return RangeReader(CLICKS, bench.archive.log, bench.table.path)


def rows(found: RangeReader, range: PositionRange = WHOLE) -> list[dict[str, Any]]:
    return [dict(row) for row in found.read(range).to_pylist()]


def test_events_come_partition_by_partition_without_duplicates_and_dead_letters(
    filled: Bench,
) -> None:
    found = rows(range_reader(filled))
    assert [row["user"] for row in found] == [
        "ann",
        "bob",
        "cid",
        "dan",
        "eve",
        "fay",
        "gus",
        "hal",
    ]
    assert [row["user"] for row in found if row["_late"]] == ["bob", "dan", "hal"]
    assert range_reader(filled).end() == WHOLE.upper


@pytest.mark.parametrize("archived", range(11))
def test_it_does_not_matter_how_much_is_archived(filled: Bench, archived: int) -> None:
    """A step takes from both partitions, so the master ends at another place each time."""
    expected = rows(range_reader(filled))
    if archived:
        filled.archive.step(archived)
    assert rows(range_reader(filled)) == expected


@pytest.mark.parametrize("archived", [0, 4, 10])
@pytest.mark.parametrize("size", [1, 2, 3, 10])
def test_ranges_one_after_another_are_the_whole(filled: Bench, archived: int, size: int) -> None:
    expected = rows(range_reader(filled))
    if archived:
        filled.archive.step(archived)
    found, reader, lower = [], range_reader(filled), WHOLE.lower
    while lower != WHOLE.upper:
        step = PositionRange(lower, WHOLE.upper).limited(size)
        found += rows(reader, step)
        lower = step.upper
    by_place = sorted(found, key=lambda row: (row["_partition"], row["_offset"]))
    assert by_place == expected


def test_who_reads_on_reads_the_log_alone(filled: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = range_reader(filled)
    filled.archive.step(4)
    cuts = [Position((5, 2)), Position((6, 2)), WHOLE.upper]
    expected = [rows(range_reader(filled), PositionRange(*pair)) for pair in pairwise(cuts)]
    rows(reader, PositionRange(WHOLE.lower, cuts[0]))

    def asked(table: MasterTable) -> None:
        raise AssertionError("the master was asked")

    monkeypatch.setattr(MasterTable, "found", asked)
    assert [rows(reader, PositionRange(*pair)) for pair in pairwise(cuts)] == expected
    with pytest.raises(AssertionError, match="the master was asked"):
        rows(reader, PositionRange(Position((1, 1)), WHOLE.upper))


def test_what_retention_has_taken_from_the_log_is_read_from_the_master(
    filled: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.core.errors import NotFound
    from headrace.log.embedded.reader import EmbeddedReader

    reader, expected = range_reader(filled), rows(range_reader(filled))
    rows(reader, PositionRange(WHOLE.lower, WHOLE.lower))
    filled.archive.step(100)

    def gone(*_: object) -> None:
        raise NotFound("offsets are no longer in the log")

    monkeypatch.setattr(EmbeddedReader, "blocks", gone)
    assert rows(reader) == expected


def test_a_column_that_came_later_is_null_in_what_is_older(filled: Bench) -> None:
    filled.archive.step(100)
    more = msgspec.structs.replace(
        CLICKS, columns=(*CLICKS.columns, ColumnPlan("page", "STRING", True))
    )
    Archive(InProcess(), more, filled.archive.log, filled.table.path).table.newest()
    found = RangeReader(more, filled.archive.log, filled.table.path).read(WHOLE)
    assert set(found["page"].to_pylist()) == {None}
    assert found["user"].to_pylist() == [row["user"] for row in rows(range_reader(filled))]


def test_a_stream_without_a_master_is_read_from_its_log(filled: Bench, tmp_path: Path) -> None:
    found = RangeReader(CLICKS, filled.archive.log, tmp_path / "nowhere")
    assert rows(found) == rows(range_reader(filled))
    assert not (tmp_path / "nowhere").exists(), "a reader makes nothing"
