"""Queries over views, answered by SQLite after translation and by the reference interpreter.

The view's rows are given twice: in storage form, as the store's relation of the typed answer, and
as the values that the reference knows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from headrace.compile.plan import WINDOW, OutputPlan
from headrace.compile.translate import Relations, Translated, translate, typed_name
from headrace.core.aggregate import Estimate
from headrace.core.errors import BadQuery, HeadraceError, UnknownColumn, Unsupported
from headrace.core.origin import Origin
from headrace.core.time import HOUR, from_iso
from headrace.define.dialect import parse_translatable
from headrace.serving.answer import rows_as_objects
from headrace.testing import differences
from headrace.testing.reference import Reference, Timestamp, Window

RELATIONS: Relations = {
    "hits": (
        OutputPlan("url", "STRING", "k0", key="k0"),
        OutputPlan("hour", WINDOW, "k1", key="k1", end=f"k1 + {HOUR}"),
        OutputPlan("n", "BIGINT", "p0"),
        OutputPlan("ms", "DOUBLE", "p1"),
        OutputPlan("users", "BIGINT", "p2", estimate=Estimate("speed", 0.0163)),
        OutputPlan("seen", "TIMESTAMP", "p3"),
        OutputPlan("ok", "BOOLEAN", "p4"),
    ),
    "Owners": (OutputPlan("url", "STRING", "k0"), OutputPlan("owner", "STRING", "p0")),
}


def at(text: str) -> int:
    return from_iso(f"2026-01-01T{text}Z")


# url, start of the hour, n, ms, users, seen, ok: the same in every column but for their shape.
HITS: list[tuple[str | None, int, int | None, float | None, int, int, int | None]] = [
    ("/a", at("00:00:00"), 3, 1.5, 2, at("00:10:00"), 1),
    ("/a", at("01:00:00"), 5, None, 4, at("01:59:59.5"), 0),
    ("/b", at("00:00:00"), 1, 2.5, 1, at("00:00:00"), None),
    (None, at("02:00:00"), None, -7.25, 9, at("02:30:00"), 1),
    ("/C", from_iso("1969-12-31T23:00:00Z"), 2, 0.0, 2, from_iso("1969-12-31T23:59:59.999999Z"), 0),
]
OWNERS = [("/a", "ann"), ("/b", "bob"), ("/x", "xia")]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    store = sqlite3.connect(tmp_path_factory.mktemp("store") / "serving.db")
    store.execute("PRAGMA case_sensitive_like = ON")
    columns = "url, hour_start, hour_end, n, ms, users, seen, ok"
    store.execute(f"CREATE TABLE {typed_name('hits')} ({columns})")
    for url, start, *rest in HITS:
        values = (url, start, start + HOUR, *rest)
        store.execute(f"INSERT INTO {typed_name('hits')} VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
    store.execute(f"CREATE TABLE {typed_name('Owners')} (url, owner)")
    store.executemany(f"INSERT INTO {typed_name('Owners')} VALUES (?, ?)", OWNERS)
    yield store
    store.close()


def translated(sql: str) -> Translated:
    return translate(parse_translatable(sql, Origin("query", 1)), RELATIONS)


def answer(db: sqlite3.Connection, sql: str) -> list[dict[str, Any]]:
    made = translated(sql)
    rows = db.execute(made.tree.sql(dialect="sqlite")).fetchall()
    return rows_as_objects(rows, made.results)


def referred(sql: str) -> list[dict[str, Any]]:
    hits = [
        {
            "url": url,
            "hour": Window(Timestamp(start), Timestamp(start + HOUR)),
            "n": n,
            "ms": ms,
            "users": users,
            "seen": Timestamp(seen),
            "ok": None if ok is None else bool(ok),
        }
        for url, start, n, ms, users, seen, ok in HITS
    ]
    owners = [{"url": url, "owner": owner} for url, owner in OWNERS]
    reference = Reference({}, {"hits": hits, "Owners": owners}, {"answer": sql})
    return reference.answer("answer", {})


QUERIES = [
    "SELECT * FROM hits",
    "SELECT url, hour FROM HITS AS h WHERE h.n > 1",
    "SELECT h.* FROM hits h WHERE h.hour.start >= '2026-01-01T01:00:00Z'",
    "SELECT url, hour.start AS s, hour.end AS e FROM hits",
    "SELECT url, seen FROM hits WHERE seen > TIMESTAMP '2026-01-01 00:30:00'",
    "SELECT url FROM hits WHERE seen BETWEEN '2026-01-01T00:00:00Z' AND '2026-01-01T00:10:00Z'",
    "SELECT url FROM hits WHERE seen IN ('2026-01-01T00:10:00Z', '2026-01-01T02:30:00+00:00')",
    "SELECT date_trunc('HOUR', seen) AS h, count(*) AS c FROM hits GROUP BY 1",
    "SELECT date_trunc('MINUTE', seen) AS m FROM hits",
    "SELECT url, seen + INTERVAL 90 SECONDS AS later FROM hits",
    "SELECT url, sum(n) AS n, min(seen) AS first, max(ms) AS ms FROM hits GROUP BY url",
    "SELECT url, sum(n) AS s FROM hits GROUP BY url HAVING sum(n) > 1 AND url IS NOT NULL",
    "SELECT url, sum(n) AS s FROM hits GROUP BY url HAVING s > 1",
    "SELECT count(*) AS c, count(n) AS k, avg(n) AS a, sum(ms) AS s FROM hits",
    "SELECT count(*) AS c, sum(n) AS s, max(seen) AS t FROM hits WHERE url = 'nobody'",
    "SELECT count(*) FILTER (WHERE ok) AS good, count_if(n > 1) AS many FROM hits",
    "SELECT count(DISTINCT url) AS urls FROM hits",
    "SELECT DISTINCT url FROM hits",
    "SELECT upper(url) AS u, length(url) AS l, substring(url, 2, 1) AS c FROM hits",
    "SELECT concat(url, '!') AS u, url || '?' AS q FROM hits",
    "SELECT url FROM hits WHERE url LIKE '/%' AND url NOT LIKE '/c'",
    "SELECT url, CASE WHEN n > 2 THEN 'many' WHEN n IS NULL THEN trim(' no ') END AS w FROM hits",
    "SELECT url, coalesce(n, 0) AS n, nullif(n, 3) AS m, if(ok, 1, 0) AS i FROM hits",
    "SELECT url, n / 2 AS half, n DIV 2 AS whole, n % 2 AS rest, -n AS minus FROM hits",
    "SELECT url, round(ms, 1) AS r, abs(ms) AS a, floor(ms) AS f, ceil(ms) AS c FROM hits",
    "SELECT url, greatest(n, 2) AS g, least(n, 2) AS l FROM hits WHERE n IS NOT NULL",
    "SELECT url, cast(n AS STRING) AS t, cast(ms AS BIGINT) AS b, cast(n AS DOUBLE) AS d FROM hits",
    "SELECT url, ok AND n > 1 AS both, NOT ok AS bad FROM hits",
    "SELECT url FROM hits WHERE url <=> NULL OR n <=> 1",
    "SELECT h.url, owner, n FROM hits h JOIN owners o ON h.url = o.url",
    "SELECT h.url, owner FROM hits h LEFT JOIN owners o ON h.url = o.url AND o.owner <> 'bob'",
    "SELECT owner, sum(n) AS n FROM owners o LEFT JOIN hits h ON h.url = o.url GROUP BY owner",
]
IN_ORDER = [
    "SELECT url, n FROM hits ORDER BY n DESC, url",
    "SELECT url, n FROM hits ORDER BY n",
    "SELECT url, n FROM hits ORDER BY n NULLS LAST LIMIT 4",
    "SELECT -n AS n, url FROM hits ORDER BY n",
    "SELECT url, sum(n) AS total FROM hits GROUP BY url ORDER BY total DESC, url LIMIT 2",
    "SELECT url AS u, n FROM hits ORDER BY 2 DESC LIMIT 3",
    "SELECT url, hour FROM hits ORDER BY hour.start DESC, url",
    "SELECT url, n FROM hits ORDER BY abs(ms) DESC LIMIT 3",
]


# Known to be answered otherwise, or with an error of SQLite. A row leaves this list when it is
# answered rightly or refused, since then its unexpected pass fails.
# Where SQLite and Spark part ways: the answer is Spark's, or there is none.
CORNERS = [
    "SELECT url, sum(n) AS n FROM hits GROUP BY url HAVING sum(n) > 1",
    "SELECT url, sum(n) AS n FROM hits GROUP BY url ORDER BY sum(n)",
    "SELECT count(DISTINCT url, n) AS c FROM hits",
    "SELECT count(*) AS c FROM hits GROUP BY ALL",
    "SELECT substring(url, 0, 2) AS b FROM hits",
    "SELECT cast(url AS INT) AS t FROM hits",
    "SELECT cast(ok AS STRING) AS t FROM hits",
    "SELECT cast(seen AS STRING) AS t FROM hits",
    "SELECT concat(seen, '') AS t FROM hits",
    "SELECT max(hour) AS h FROM hits",
    "SELECT INTERVAL 1 HOUR + seen AS t FROM hits",
    "SELECT CASE WHEN ok THEN seen END AS t FROM hits",
    "SELECT if(n > 1, ok, true) AS t FROM hits",
    "SELECT greatest(seen, seen) AS t FROM hits",
    "SELECT nullif(seen, '2026-01-01T00:10:00Z') AS t FROM hits",
    "SELECT url FROM hits WHERE ok = 'true'",
    "SELECT url FROM hits WHERE n = '3'",
    "SELECT round(ms, -1) AS c FROM hits",
]


@pytest.mark.parametrize("sql", QUERIES)
def test_answer_of_the_store_is_the_references(db: sqlite3.Connection, sql: str) -> None:
    expected = referred(sql)
    assert expected, "a query without rows says nothing"
    assert differences(expected, answer(db, sql)) == []


@pytest.mark.parametrize("sql", CORNERS)
def test_answer_is_the_references_or_none(db: sqlite3.Connection, sql: str) -> None:
    try:
        found = answer(db, sql)
    except HeadraceError:
        return
    assert differences(referred(sql), found) == []


@pytest.mark.parametrize("sql", IN_ORDER)
def test_rows_come_in_the_order_of_the_reference(db: sqlite3.Connection, sql: str) -> None:
    assert answer(db, sql) == referred(sql)


@pytest.mark.parametrize(
    ("sql", "estimate"),
    [
        ("SELECT url AS x FROM hits", None),
        ("SELECT users AS x FROM hits", "speed"),
        ("SELECT sum(users) + 1 AS x FROM hits", "speed"),
        ("SELECT n AS x FROM hits WHERE users > 1", None),
    ],
)
def test_value_made_of_an_estimate_is_an_estimate(sql: str, estimate: str | None) -> None:
    found = [result.estimate for result in translated(sql).results]
    assert [mark.when if mark else None for mark in found] == [estimate]


def test_views_that_are_read_are_told_by_their_declared_names() -> None:
    made = translated("SELECT o.owner FROM HITS JOIN OWNERS AS o ON o.url = hits.url")
    assert made.relations == ("hits", "Owners")


HINT = (
    "over views there is one SELECT with comparisons, arithmetic, CASE, coalesce, text functions, "
    "date_trunc, count, sum, min, max, avg, joins, GROUP BY, HAVING, ORDER BY and LIMIT."
)
REFUSED: list[tuple[str, type[HeadraceError], str, str | None]] = [
    ("SELECT n FROM hit", BadQuery, "there is no view 'hit'", "did you mean 'hits'?"),
    ("SELECT n FROM main.hits", BadQuery, "there is no view 'hits'", "did you mean 'hits'?"),
    ("SELECT name FROM sqlite_master", BadQuery, "there is no view 'sqlite_master'", None),
    ("SELECT * FROM _typed_hits", BadQuery, "there is no view '_typed_hits'", None),
    ("SELECT ulr FROM hits", UnknownColumn, "there is no column 'ulr'", "did you mean 'url'?"),
    (
        "SELECT n FROM hits WHERE x.n = 1",
        UnknownColumn,
        "there is no column 'x.n'",
        "did you mean 'n'?",
    ),
    (
        "SELECT load_extension('x') FROM hits",
        Unsupported,
        "'load_extension' is not available over views",
        HINT,
    ),
    (
        "SELECT sum(n) OVER () AS s FROM hits",
        Unsupported,
        "'window' is not available over views",
        HINT,
    ),
    (
        "SELECT n FROM (SELECT n FROM hits)",
        Unsupported,
        "'subquery' is not available over views",
        HINT,
    ),
    (
        "SELECT cast(url AS BINARY) FROM hits",
        Unsupported,
        "a cast to BINARY is not available over views",
        None,
    ),
    (
        "SELECT cast(url AS DATE) FROM hits",
        Unsupported,
        "a cast of a value to a time is not available over views",
        None,
    ),
    (
        "SELECT date_trunc('YEAR', seen) FROM hits",
        Unsupported,
        "date_trunc('YEAR', …) is not available over views",
        None,
    ),
    (
        "SELECT n FROM hits WHERE seen > 'soon'",
        BadQuery,
        "'soon' is not a moment such as '2026-11-15T19:00:00Z'",
        None,
    ),
    ("SELECT n FROM hits ORDER BY 2", BadQuery, "there is no item 2 to group or order by", None),
]


@pytest.mark.parametrize(("sql", "kind", "message", "hint"), REFUSED)
def test_what_is_not_known_is_refused(
    sql: str, kind: type[HeadraceError], message: str, hint: str | None
) -> None:
    with pytest.raises(HeadraceError) as caught:
        translated(sql)
    error = caught.value
    assert (type(error), error.message, error.hint) == (kind, message, hint)


def test_refusal_of_a_definition_is_told_at_its_place() -> None:
    query, origin = (
        parse_translatable("SELECT ulr FROM hits", Origin("a.sql", 1)),
        Origin("a.sql", 7),
    )
    with pytest.raises(UnknownColumn) as caught:
        translate(query, RELATIONS, origin)
    assert caught.value.origin == origin


def test_translating_leaves_the_query_as_it_was() -> None:
    query = parse_translatable("SELECT url, n FROM hits ORDER BY 2", Origin("query", 1))
    before = query.sql()
    translate(query, RELATIONS)
    assert query.sql() == before
