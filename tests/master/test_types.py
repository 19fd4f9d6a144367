"""Every type in the master: written, added to a table that has files already, and read again by
Arrow and by DuckDB.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from headrace.core.position import Position, PositionRange
from headrace.core.schema import Column, Schema, Type
from headrace.log.block import Block
from headrace.log.decode import Decoder
from headrace.master.decoding import declared_of
from headrace.master.parquet import FileWriter, read_rows
from headrace.master.table import MasterTable

CART = {"id": 1, "on": [date(2026, 1, 1)]}
VALUES: dict[str, tuple[str, Any]] = {
    "STRUCT<id: INT, on: ARRAY<DATE>>": ('{"id": 1, "on": ["2026-01-01"]}', CART),
    "STRUCT<a: MAP<STRING, INT>>": ('{"a": {"x": 1}}', {"a": {"x": 1}}),
    "MAP<STRING, DECIMAL(4,2)>": ('{"x": 1.5}', {"x": Decimal("1.50")}),
    "ARRAY<STRUCT<a: TINYINT>>": ('[{"a": 1}, null]', [{"a": 1}, None]),
    "TIMESTAMP_NTZ": ('"2026-01-01T00:00:00"', datetime(2026, 1, 1)),
    "DECIMAL(38,18)": ("1.5", Decimal("1.500000000000000000")),
    "BINARY": ('"aGk="', b"hi"),
    "VARIANT": ('{"z": [1]}', '{"z":[1]}'),
    "SMALLINT": ("7", 7),
    "FLOAT": ("0.5", 0.5),
}


def appended(path: Path, types: list[str], first: int) -> MasterTable:
    """The table after two more events with columns of these types."""
    columns = tuple(Column(f"c{n}", Type.parse(text)) for n, text in enumerate(types))
    decoder = Decoder(Schema(columns))
    fields = ", ".join(f'"c{n}": {VALUES[text][0]}' for n, text in enumerate(types))
    block = Block.of(first, 0, [f"{{{fields}}}".encode()] * 2, bytes(2))
    table = MasterTable(path, declared_of(decoder), 1)
    table.newest()
    writer = FileWriter(path, table.schema, ("event", "2026-01-01", 0))
    writer.write(decoder.decode([block], 0, None, raw=True).table)
    range = PositionRange(Position((first,)), Position((first + 2,)))
    table.append(range, [writer.close()], [None])
    return table


@pytest.mark.parametrize("text", VALUES)
def test_a_table_of_any_type_knows_the_offsets_of_its_files(text: str, tmp_path: Path) -> None:
    (file,) = appended(tmp_path / "m", [text], 0).newest().files
    assert (file.first_offset, file.next_offset) == (0, 2)


def test_columns_of_every_type_are_added_one_by_one_and_read_again(tmp_path: Path) -> None:
    types, path = list(VALUES), tmp_path / "m"
    for many in range(1, len(types) + 1):
        table = appended(path, types[:many], 2 * (many - 1))
    files = table.newest().files
    assert sorted(file.first_offset for file in files) == [2 * n for n in range(len(types))]
    names = [f"c{n}" for n in range(len(types))]
    listed = [file.path for file in files]
    with duckdb.connect() as connection:
        found = connection.execute(
            f"SELECT {', '.join(names)} FROM read_parquet({listed}, union_by_name = true) "
            "ORDER BY _offset"
        ).fetchall()
    expected = [value for _, value in VALUES.values()]
    assert list(found[-1]) == expected
    assert list(found[0]) == [expected[0], *[None] * (len(types) - 1)]
    rows = read_rows(files, table.schema, [*names, "_offset"]).sort_by("_offset").to_pylist()
    assert [_plain(rows[-1][name]) for name in names] == expected


def _plain(value: Any) -> Any:
    """Arrow gives a map as pairs."""
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return dict(value)
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, dict) else value
