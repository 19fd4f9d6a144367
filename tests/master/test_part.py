"""A range of the master in parts: each event once, in tables of bounded size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.core.errors import CorruptMaster
from headrace.core.event import OFFSET, PARTITION
from headrace.core.position import Position, PositionRange
from headrace.master import part
from headrace.master.parquet import FileWriter
from headrace.master.part import MasterPart, parts_of
from headrace.master.table import event_files, file_schema
from headrace.master.version import MasterFile

SCHEMA = file_schema(pa.schema([("n", pa.int64())]))
READ = pa.schema([SCHEMA.field(name) for name in (PARTITION, OFFSET)])
WHOLE = PositionRange(Position((0, 0)), Position((100, 7)))


def write(master: Path, partition: int, first: int, after: int) -> MasterFile:
    known = {PARTITION: [partition] * (after - first), OFFSET: list(range(first, after))}
    columns = [pa.array(known.get(f.name, [None] * (after - first)), f.type) for f in SCHEMA]
    writer = FileWriter(master, SCHEMA, ("event", "2026-01-01", partition))
    writer.write(pa.table(columns, schema=SCHEMA))
    file = writer.close()
    return replace(file, path=str(master / file.path))


@pytest.fixture
def files(tmp_path: Path) -> list[MasterFile]:
    return [write(tmp_path, *place) for place in [(0, 0, 40), (0, 40, 50), (0, 50, 100), (1, 0, 7)]]


def parts(files: list[MasterFile], range: PositionRange, rows: int) -> list[MasterPart]:
    return parts_of(event_files(files, range), range, READ, rows)


@pytest.mark.parametrize("rows", [1, 45, 1_000])
@pytest.mark.parametrize("lower", [(0, 0), (13, 2), (40, 7)])
@pytest.mark.parametrize("upper", [(100, 7), (61, 7), (40, 7)])
def test_each_event_of_the_range_is_in_one_part(
    files: list[MasterFile], lower: tuple[int, int], upper: tuple[int, int], rows: int
) -> None:
    wanted = PositionRange(Position(lower), Position(upper))
    tables = [table for each in parts(files, wanted, rows) for table in each.tables()]
    found = [(row[PARTITION], row[OFFSET]) for table in tables for row in table.to_pylist()]
    assert found == [
        (n, o) for n, each in wanted.intervals() for o in range(each.lower, each.upper)
    ]
    assert tables, "a query over no events has a result too"


def test_files_are_shared_out_by_their_rows(files: list[MasterFile]) -> None:
    assert [len(each.files) for each in parts(files, WHOLE, 50)] == [2, 1, 1]
    assert [len(each.files) for each in parts(files, WHOLE, 1)] == [1, 1, 1, 1]
    assert [len(each.files) for each in parts(files, WHOLE, 1_000)] == [4]


def test_a_table_is_bounded(files: list[MasterFile], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "TABLE_ROWS", 45)
    [whole] = parts(files, WHOLE, 1_000)
    assert [table.num_rows for table in whole.tables()] == [50, 50, 7]


def test_a_damaged_file_is_named(files: list[MasterFile]) -> None:
    path = Path(files[1].path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    [whole] = parts(files, WHOLE, 1_000)
    with pytest.raises(CorruptMaster, match="its checksum does not match"):
        list(whole.tables())
