"""What the log still has is written into the master again, row for row as it was."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from headrace.compile.plan import ColumnPlan
from headrace.core.errors import CorruptMaster, NotFound
from headrace.core.event import EventStatus
from headrace.master.parquet import damage_of, verify_files
from headrace.master.repair import repair
from headrace.master.version import MasterFile

from .bench import Bench, InProcess, click
from .test_damage import flip

DAY_US = 86_400_000_000


@pytest.fixture
def filled(tmp_path: Path) -> Bench:
    """Three steps over two days, with late events, duplicates, dead letters and a wrong clock."""
    bench = Bench(tmp_path, segment_bytes_max=1)
    for step in range(3):
        bench.send(0, click("ann", 100 * step), click("late", 1), b"no json", click("ann", 5))
        bench.send(0, click("ann", 1), status=EventStatus.DUPLICATE)
        bench.send(0, click("ahead", 90_000 * (step + 1)), click("after", 100 * step + 1))
        bench.send(1, click("bob", 7))
        bench.clock.now_us += DAY_US // 2
        bench.send(0, click("next day", 100 * step + 60))
        bench.archive.step(100)
    bench.topic.close()
    return bench


def mend(bench: Bench, file: MasterFile) -> None:
    repair(bench.archive.stream, bench.archive.log, bench.table.path, file)


def damaged(bench: Bench) -> list[MasterFile]:
    return [file for file in bench.table.newest().files if damage_of(file)]


@pytest.mark.parametrize("compacted", [False, True])
def test_each_file_is_made_again_row_for_row(filled: Bench, compacted: bool) -> None:
    if compacted:
        assert filled.compact(files_max=2)
    rows, position = filled.rows(), filled.table.newest().position
    assert {row["_late"] for row in rows} == {False, True}
    for number in range(len(filled.table.newest().files)):
        file = filled.table.newest().files[number]
        flip(file.path, file.bytes // 2)
        assert damaged(filled) == [file]
        mend(filled, file)
        assert damaged(filled) == []
        assert filled.rows() == rows
        assert filled.table.newest().position == position


def test_a_missing_file_is_made_again(filled: Bench) -> None:
    rows = filled.rows()
    for file in filled.table.newest().files:
        Path(file.path).unlink()
    for file in sorted(filled.table.newest().files, key=lambda f: (f.partition, f.first_offset)):
        mend(filled, file)
    assert filled.rows() == rows


def test_what_retention_has_removed_from_the_log_cannot_be_made_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path, segment_bytes_max=1)
    for number in range(3):
        bench.send(0, click(f"u{number}"))
    bench.archive.step(100)
    bench.clock.now_us += DAY_US
    bench.topic.retain(bench.table.newest().position, 0)
    (file,) = bench.table.newest().files
    flip(file.path, 9)
    with pytest.raises(NotFound, match="are no longer in partition 0 of the log"):
        mend(bench, file)
    assert bench.table.newest().files == (file,)
    bench.topic.close()


def test_lateness_is_not_guessed_where_a_file_before_is_damaged(filled: Bench) -> None:
    events = [f for f in filled.table.newest().files if f.status == "event" and f.partition == 0]
    first, *_, last = sorted(events, key=lambda file: file.first_offset)
    flip(first.path, 9)
    flip(last.path, 9)
    with pytest.raises(CorruptMaster) as caught:
        mend(filled, last)
    assert caught.value.origin == first.path
    mend(filled, first)
    mend(filled, last)
    assert verify_files(filled.table.newest().files)


def with_column(bench: Bench, name: str, type: str) -> Bench:
    """The same stream after a column was added to its definition, as its second one."""
    bench.topic.close()
    first, *rest = bench.archive.stream.columns
    columns = (first, ColumnPlan(name, type, True), *rest)
    stream = msgspec.structs.replace(bench.archive.stream, columns=columns)
    return Bench(bench.table.path.parent, InProcess(), stream, segment_bytes_max=1)


@pytest.fixture
def widened(tmp_path: Path) -> Bench:
    """Three steps, with a column more in each; every event has values for all of them, and the
    first ones not of the type that was declared later.
    """
    bench = Bench(tmp_path, segment_bytes_max=1)
    for name, type in ((None, ""), ("referrer", "STRING"), ("code", "BIGINT")):
        bench = with_column(bench, name, type) if name else bench
        code = 7 if name == "code" else "seven"
        bench.send(0, click("ann", referrer="/x", code=code), b"no json")
        bench.archive.step(100)
    bench.topic.close()
    return bench


def test_rows_older_than_a_column_are_made_again_without_it(widened: Bench) -> None:
    rows = widened.rows()
    events = [row for row in rows if row["_status"] == "event"]
    assert [row.get("referrer") for row in events] == [None, "/x", "/x"]
    assert [row.get("code") for row in events] == [None, None, 7]
    for file in widened.table.newest().files:
        flip(file.path, file.bytes // 2)
    for file in sorted(widened.table.newest().files, key=lambda file: file.first_offset):
        mend(widened, file)
    assert widened.rows() == rows


def test_which_rows_of_a_compacted_file_are_older_than_a_column_is_not_guessed(
    widened: Bench,
) -> None:
    assert widened.compact(files_max=2)
    (file,) = [one for one in widened.table.newest().files if one.status == "event"]
    flip(file.path, file.bytes // 2)
    before = set(widened.table.path.rglob("*.parquet"))
    with pytest.raises(CorruptMaster, match="a damaged file cannot be rewritten"):
        mend(widened, file)
    assert before <= set(widened.table.path.rglob("*.parquet"))
    assert file in widened.table.newest().files


def test_a_column_that_is_in_no_file_yet_is_not_added_by_a_repair(filled: Bench) -> None:
    rows, columns = filled.rows(), filled.table.newest().columns
    wider = with_column(filled, "referrer", "STRING")
    for file in filled.table.newest().files:
        flip(file.path, file.bytes // 2)
    for file in sorted(filled.table.newest().files, key=lambda f: (f.partition, f.first_offset)):
        mend(wider, file)
    wider.topic.close()
    assert filled.table.newest().columns == columns
    assert filled.rows() == rows
