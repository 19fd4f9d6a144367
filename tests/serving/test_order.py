"""The first rows of a view in an order are the first of all of its rows, which are counted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.core.errors import BadRequest

from .bench import Bench, Click

PAGES = 300


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Page /n has n clicks in the first minute, half of them in batch; two have one later."""
    made = Bench(tmp_path_factory.mktemp("order") / "serving.db")
    clicks = [Click(f"/{n:03}", f"u{n}", 5, n) for n in range(1, PAGES + 1) for _ in range(n % 7)]
    made.send(*clicks[::2])
    made.build()
    made.send(*clicks[1::2], Click("/001", "ann", 65, 2), Click("/002", "ann", 65, 9))
    yield made
    made.close()


def test_the_largest_rows_are_the_largest_of_all(bench: Bench) -> None:
    everything = bench.reader.view("users").rows
    found = bench.reader.view("users", limit=3, order="-users,-page")
    expected = sorted(everything, key=lambda row: (row["users"], row["page"]), reverse=True)
    assert found.rows == expected[:3]
    assert found.total == len(everything) > len(found.rows)


def test_the_newest_window_comes_first_and_in_it_the_largest(bench: Bench) -> None:
    found = bench.reader.view("hits", order="-minute,-slowest", limit=3)
    assert [(row["page"], row["slowest"]) for row in found.rows] == [
        ("/002", 9), ("/001", 2), ("/300", 300),
    ]  # fmt: skip
    assert found.total == len(bench.reader.view("hits").rows)


def test_rows_are_counted_that_meet_the_question(bench: Bench) -> None:
    later = bench.reader.view("hits", since="2026-01-01T00:01:00Z", order="page", limit=1)
    assert ([row["page"] for row in later.rows], later.total) == (["/001"], 2)
    assert bench.reader.view("hits", {"page": "/none"}, order="page").total == 0
    assert bench.reader.view("top", order="-n").total == 2, "a view's LIMIT has decided before"
    assert bench.reader.view("pages", order="-hits", limit=1).total == len(
        bench.reader.view("pages").rows
    )
    assert bench.reader.view("hits", limit=1).total is None


def test_an_order_by_what_is_no_column_is_refused(bench: Bench) -> None:
    with pytest.raises(BadRequest) as refused:
        bench.reader.view("hits", order="-slowes")
    assert (refused.value.message, refused.value.detail, refused.value.hint) == (
        "view 'hits' cannot be ordered by 'slowes'",
        "available columns: page, minute, n, slowest.",
        "did you mean 'slowest'?",
    )
    with pytest.raises(BadRequest):
        bench.reader.view("hits", order='n" --')


def test_keys_are_told_from_measures_also_in_sql_and_over_views(bench: Bench) -> None:
    def keys(columns: object) -> list[str]:
        return [name for name, info in dict(columns).items() if info.key]  # type: ignore[call-overload]

    assert keys(bench.reader.view("hits").columns) == ["page", "minute"]
    assert keys(bench.reader.view("pages").columns) == ["page"]
    sql = "SELECT page AS p, minute, n, n + 1 AS more FROM hits"
    assert keys(bench.reader.sql(sql).columns) == ["p", "minute"]
