"""A view in a file of each kind, read back by the tool that it is for."""

from __future__ import annotations

import csv
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from headrace.core.errors import BadRequest, Conflict, NotFound
from headrace.serving.export import export_view

from .bench import CLICKS, VIEWS, Bench, Click, alike


def flat(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Windows as two columns."""
    found = []
    for row in rows:
        parts: dict[str, Any] = {}
        for name, value in row.items():
            edges = isinstance(value, dict)
            parts |= {f"{name}_{e}": v for e, v in value.items()} if edges else {name: value}
        found.append(parts)
    return found


@pytest.mark.parametrize("view", VIEWS)
def test_a_table_of_sqlite_has_the_rows_of_the_view(
    bench: Bench, view: str, tmp_path: Path
) -> None:
    bench.build()
    bench.send(*CLICKS)
    path = tmp_path / "out.sqlite"
    assert export_view(bench.store.db, view, path) == len(bench.expected(view))
    tool = sqlite3.connect(path)
    tool.row_factory = sqlite3.Row
    rows = [dict(row) for row in tool.execute(f'SELECT * FROM "{view}"')]
    tool.close()
    assert alike(rows) == alike(flat(bench.rows(view)))


def test_parquet_csv_and_duckdb_have_typed_columns(bench: Bench, tmp_path: Path) -> None:
    bench.build()
    bench.send(*CLICKS)
    for ending in ("parquet", "csv", "duckdb"):
        export_view(bench.store.db, "hits", tmp_path / f"hits.{ending}")
    table = pq.read_table(tmp_path / "hits.parquet")
    assert {field.name: str(field.type) for field in table.schema} == {
        "page": "string",
        "minute_start": "timestamp[us, tz=UTC]",
        "minute_end": "timestamp[us, tz=UTC]",
        "n": "int64",
        "slowest": "int64",
    }
    with duckdb.connect(str(tmp_path / "hits.duckdb")) as tool:
        assert tool.execute("SELECT sum(n) FROM hits").fetchone() == (len(CLICKS),)
    with (tmp_path / "hits.csv").open() as file:
        assert sum(int(row["n"]) for row in csv.DictReader(file)) == len(CLICKS)


def test_text_that_a_spreadsheet_would_evaluate_is_escaped_in_csv(
    bench: Bench, tmp_path: Path
) -> None:
    bench.build()
    link = '=HYPERLINK("https://evil.example")'
    bench.send(Click(link, "ada", 200), Click("/home", "ada", 200))
    export_view(bench.store.db, "hits", tmp_path / "hits.csv")
    with (tmp_path / "hits.csv").open() as file:
        pages = {row["page"] for row in csv.DictReader(file)}
    assert pages == {f"'{link}", "/home"}


def test_mistakes_have_their_sentence_and_nothing_is_overwritten(
    bench: Bench, tmp_path: Path
) -> None:
    bench.build()
    there = tmp_path / "there.csv"
    there.write_text("mine")
    with pytest.raises(Conflict, match="already exists"):
        export_view(bench.store.db, "hits", there)
    with pytest.raises(BadRequest, match="does not have a supported file extension"):
        export_view(bench.store.db, "hits", tmp_path / "hits.xlsx")
    with pytest.raises(NotFound, match="there is no view 'hit'"):
        export_view(bench.store.db, "hit", tmp_path / "hit.csv")
    assert there.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.glob("*.csv")) == ["there.csv"]
