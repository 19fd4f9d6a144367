"""A range of events is the same wherever its events are now, and however it is cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.dataset as ds
import pytest

from headrace.compile.plan import ColumnPlan
from headrace.core.errors import NotFound
from headrace.core.event import OFFSET, PARTITION, EventStatus
from headrace.core.position import Interval, Position, PositionRange
from headrace.define.layout import Layout
from headrace.log.block import Block
from headrace.log.embedded.reader import EmbeddedReader
from headrace.log.opening import open_reader
from headrace.master.archive import Archive
from headrace.master.balance import read_dead_letters
from headrace.master.decoding import decoder_of
from headrace.master.event_range import RangeReader
from headrace.master.table import MasterTable
from headrace.run.history import stream_relations

from .bench import CLICKS, Bench, InProcess, click

WHOLE = PositionRange(Position((0, 0)), Position((7, 3)))


@pytest.fixture
def filled(bench: Bench) -> Bench:
    fill(bench)
    return bench


def fill(bench: Bench) -> None:
    """Ten records: late ones, a duplicate and a dead letter among them."""
    bench.send(0, click("ann", 100), click("bob", 5), click("cid", 101))
    bench.send(0, b"not json", click("dan", 6))
    bench.send(0, click("ann", 100), status=EventStatus.DUPLICATE)
    bench.send(0, click("eve", 102))
    bench.send(1, click("fay", 10), click("gus", 200), click("hal", 20))


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

    monkeypatch.setattr(MasterTable, "newest_or_none", asked)
    assert [rows(reader, PositionRange(*pair)) for pair in pairwise(cuts)] == expected
    with pytest.raises(AssertionError, match="the master was asked"):
        rows(reader, PositionRange(Position((1, 1)), WHOLE.upper))


def by_range(bench: Bench, _: Path) -> list[tuple[str, str]]:
    reader = range_reader(bench)
    # It remembers this end, and so would go on reading the log from there.
    rows(reader, PositionRange(WHOLE.lower, WHOLE.lower))
    return [("event", row["user"]) for row in rows(reader)]


def by_query(bench: Bench, folder: Path) -> list[tuple[str, str]]:
    relations, end = stream_relations(Layout(folder), CLICKS, folder)
    assert end == WHOLE.upper
    found = []
    for relation in relations[:-1]:
        table = ds.dataset(relation.paths, format=_FORMATS[relation.kind]).to_table()
        found += table.sort_by([(PARTITION, "ascending"), (OFFSET, "ascending")]).to_pylist()
    return [("event", row["user"]) for row in found]


def by_dead_letters(bench: Bench, _: Path) -> list[tuple[str, str]]:
    found = read_dead_letters(bench.table, decoder_of(CLICKS), open_reader(bench.archive.log), 10)
    assert found.records == {"event": 8, "duplicate": 1, "dead_letter": 1}
    return [("dead_letter", row["_raw"].decode()) for row in found.newest]  # type: ignore[attr-defined]


_FORMATS = {"arrow_file": "arrow", "parquet": "parquet"}
EVENTS = [("event", user) for user in ("ann", "bob", "cid", "dan", "eve", "fay", "gus", "hal")]
READERS = [(by_range, EVENTS), (by_query, EVENTS), (by_dead_letters, [("dead_letter", "not json")])]


@pytest.mark.parametrize(("read", "expected"), READERS)
@pytest.mark.parametrize("archived", [0, 4])
def test_what_retention_takes_from_the_log_meanwhile_is_read_from_the_master(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    read: Callable[[Bench, Path], list[tuple[str, str]]],
    expected: list[tuple[str, str]],
    archived: int,
) -> None:
    log, master = Layout(tmp_path).log("clicks").folder, Layout(tmp_path).master("clicks")
    bench = Bench(tmp_path, segment_bytes_max=1, log=log, master=master)
    fill(bench)
    if archived:
        bench.archive.step(archived)
    blocks = EmbeddedReader.blocks

    def overtaken(reader: EmbeddedReader, partition: int, interval: Interval) -> Iterator[Block]:
        """The archive and retention come between the version of the master and the log."""
        monkeypatch.setattr(EmbeddedReader, "blocks", blocks)
        bench.archive.step(100)
        bench.clock.now_us += 1
        assert bench.topic.retain(bench.table.newest().position, 0), "nothing was removed"
        return blocks(reader, partition, interval)

    monkeypatch.setattr(EmbeddedReader, "blocks", overtaken)
    assert read(bench, tmp_path) == expected
    assert EmbeddedReader.blocks is blocks, "the log was not read"
    bench.topic.close()


def test_what_neither_has_is_an_error_and_no_gap(tmp_path: Path) -> None:
    bench = Bench(tmp_path, segment_bytes_max=1)
    fill(bench)
    bench.archive.step(100)
    bench.clock.now_us += 1
    bench.topic.retain(WHOLE.upper, 0)
    bench.topic.close()
    lost = RangeReader(CLICKS, bench.archive.log, tmp_path / "nowhere")
    with pytest.raises(NotFound, match="are no longer in partition 0 of the log"):
        lost.read(WHOLE)


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
