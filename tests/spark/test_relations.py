"""A project's tables, read in each format with the declared columns."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.compile.plan import TablePlan
from headrace.core.errors import NotFound
from headrace.spark.relations import read_table, register, reload, rows_of, table_path

DDL = "`url` STRING, `n` INT, `ok` BOOLEAN, `day` DATE"
DAY = datetime.date(2026, 1, 2)
ROWS = [("/a", 1, True, DAY), ("/ü", None, False, None)]


def write(format: str, folder: Path) -> None:
    if format == "csv":
        (folder / "pages.csv").write_text("url,n,ok,day\n/a,1,true,2026-01-02\n/ü,,false,\n")
    elif format == "json":
        rows = [{"url": u, "n": n, "ok": o, "day": d and str(d)} for u, n, o, d in ROWS]
        (folder / "pages.json").write_text("\n".join(json.dumps(row) for row in rows))
    else:
        types = [pa.string(), pa.int32(), pa.bool_(), pa.date32()]
        columns = [
            pa.array(list(c), t) for c, t in zip(zip(*ROWS, strict=True), types, strict=True)
        ]
        pq.write_table(pa.table(columns, ["url", "n", "ok", "day"]), folder / "pages.parquet")


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_table_is_read_with_its_declared_types(spark: Any, tmp_path: Path, format: str) -> None:
    write(format, tmp_path)
    table = TablePlan("pages", DDL, format, f"pages.{format}")
    assert sorted(rows_of(read_table(spark, table, tmp_path)), key=str) == ROWS


def test_options_say_how_a_csv_is_written_and_a_folder_is_one_table(
    spark: Any, tmp_path: Path
) -> None:
    (tmp_path / "pages").mkdir()
    for name in ("a", "b"):
        (tmp_path / "pages" / f"{name}.csv").write_text(f"/{name}|1\n")
    options = (("header", "false"), ("sep", "|"))
    table = TablePlan("pages", "`url` STRING, `n` INT", "csv", "pages", options)
    assert sorted(rows_of(read_table(spark, table, tmp_path))) == [("/a", 1), ("/b", 1)]


def test_table_without_a_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        table_path(TablePlan("pages", DDL, "csv", "lookups/pages.csv"), tmp_path)
    assert str(caught.value) == (
        "NotFound: table 'pages' has no file at lookups/pages.csv\n"
        "  hint: LOCATION is relative to the project's folder."
    )


@pytest.fixture
def session(spark: Any) -> Iterator[Any]:
    own = spark.newSession()
    yield own
    own.catalog.clearCache()


def test_registered_table_is_known_by_name_and_kept(session: Any, tmp_path: Path) -> None:
    write("csv", tmp_path)
    register(session, [TablePlan("pages", DDL, "csv", "pages.csv")], (), tmp_path)
    assert rows_of(session.sql("SELECT url FROM PAGES WHERE n = 1")) == [("/a",)]
    assert rows_of(session.sql("SELECT count(*) FROM pages")) == [(2,)]
    # Read once: what becomes of the file afterwards is not seen until the next start.
    (tmp_path / "pages.csv").unlink()
    assert rows_of(session.sql("SELECT count(*) FROM pages")) == [(2,)]


def test_a_reloaded_table_has_its_new_content_also_where_a_query_runs_already(
    spark: Any, tmp_path: Path
) -> None:
    file = tmp_path / "pages.csv"
    file.write_text("url,n\n/a,1\n")
    table = TablePlan("pages", "`url` STRING, `n` INT", "csv", "pages.csv")
    sessions = [spark.newSession() for _ in range(2)]
    for session in sessions:
        register(session, [table], [], tmp_path)
    running = sessions[0].sql("SELECT url, n FROM pages")
    assert rows_of(running) == [("/a", 1)]
    file.write_text("url,n\n/a,2\n/b,3\n")
    for session in sessions:
        reload(session, table, tmp_path)
        assert sorted(rows_of(session.sql("SELECT url, n FROM pages"))) == [("/a", 2), ("/b", 3)]
    assert sorted(rows_of(running.select("*"))) == [("/a", 2), ("/b", 3)]
