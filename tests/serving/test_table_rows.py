"""Queries join views with tables, as Spark has read them."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from headrace.compile.plan import TablePlan
from headrace.core.errors import NotReady, Unsupported
from headrace.serving import table_rows

from .bench import CLICKS, Bench, plan_of

PAGES = TablePlan("pages_of", "`page` STRING", "csv", "pages.csv")
ROWS = pa.table(
    {
        "page": ["/a", "/b", None],
        "price": pa.array([Decimal("1.50"), None, Decimal("2.00")], pa.decimal128(10, 2)),
        "since": pa.array([datetime(2026, 1, 1)] * 3, pa.timestamp("us", tz="UTC")),
        "local": pa.array([datetime(2026, 1, 1)] * 3, pa.timestamp("us")),
        "day": [date(2026, 1, 1), None, None],
        "tags": [["x"], [], None],
    }
)


@pytest.fixture
def joined(tmp_path: Path) -> Bench:
    made = Bench(tmp_path / "serving.db", msgspec.structs.replace(plan_of(), tables=(PAGES,)))
    made.build()
    made.send(*CLICKS)
    made.store.record_table("pages_of", "v1", ROWS)
    return made


def test_a_query_joins_a_view_with_a_table(joined: Bench) -> None:
    found = joined.reader.sql(
        "SELECT u.page, t.price, t.since, t.local, t.day FROM users u "
        "JOIN pages_of t ON u.page = t.page ORDER BY u.page"
    )
    times = {"since": "2026-01-01T00:00:00Z", "local": "2026-01-01T00:00:00"}
    assert found.rows == [
        {"page": "/a", "price": "1.50", **times, "day": "2026-01-01"},
        {"page": "/b", "price": None, **times, "day": None},
    ]
    assert joined.reader.answers_about({"users", "pages_of"})
    assert not joined.reader.answers_about({"pages_of"})  # Spark reads tables alone
    assert not joined.reader.answers_about({"users", "clicks"})


def test_new_rows_take_the_place_of_the_old(joined: Bench) -> None:
    joined.store.record_table("pages_of", "v2", ROWS.slice(0, 1))
    sql = "SELECT count(*) AS n FROM users u JOIN pages_of t ON u.page = t.page"
    assert joined.reader.sql(sql).rows == [{"n": 1}]


def test_a_table_with_too_many_rows_is_refused_with_a_sentence(
    joined: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_rows, "ROWS_MAX", 2)
    joined.store.record_table("pages_of", "v2", ROWS)
    with pytest.raises(Unsupported) as refused:
        joined.reader.sql("SELECT u.page FROM users u JOIN pages_of t ON u.page = t.page")
    said = "table 'pages_of' cannot be joined with views: it has more than 2 rows"
    assert refused.value.message == said


def test_a_table_that_is_not_loaded_yet_can_be_joined_later(joined: Bench) -> None:
    with joined.store.db.write() as db:
        db.execute("DELETE FROM _table_rows")
        db.execute("DELETE FROM _tables")
    with pytest.raises(NotReady, match="table 'pages_of' is not loaded yet"):
        joined.reader.sql("SELECT u.page FROM users u JOIN pages_of t ON u.page = t.page")
