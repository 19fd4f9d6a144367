"""SQL means one thing from the event to the answer: what Spark gives for the definition's text over
the events is what is answered, after aggregation and over views too.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from headrace.audit.oracle import audit_view
from tests.engines import Compiled, Parts, compile_sql

SCHEMA = (
    "k STRING, b BIGINT, i INT, d DOUBLE, s STRING, o BOOLEAN, y DATE, m DECIMAL(12,2), "
    "ts TIMESTAMP, tiny TINYINT, f FLOAT, x BINARY, z TIMESTAMP_NTZ, l ARRAY<STRING>, "
    "p MAP<STRING, DOUBLE>, r STRUCT<a: INT, b: ARRAY<DECIMAL(6,2)>, c: STRUCT<D: DATE>>"
)
STREAM = f"CREATE STREAM clicks ({SCHEMA}, WATERMARK ts DELAY OF INTERVAL 1 HOUR);\n"
EVENTS = [
    {"k": "a", "b": 1, "i": 7, "d": 2.675, "s": "Äß", "o": True, "y": "2026-02-28", "m": 0.10,
     "ts": "2026-02-28T23:59:59.5Z", "tiny": -128, "f": 0.1, "x": "AP8=",
     "z": "2026-01-01T00:00:00.000001", "l": ["a", None], "p": {"b": 2.5, "a": 0.0},
     "r": {"a": 1, "b": [1.5, None], "c": {"D": "2024-02-29"}}},
    {"k": "a", "b": 9, "i": -7, "d": 0.1, "s": "a%b", "o": False, "y": "2024-02-29", "m": 12.35,
     "ts": "2026-01-31T10:00:00Z", "tiny": 127, "f": -0.0, "x": "", "z": "1969-12-31T23:59:59",
     "l": [], "p": {"a": -0.0, "b": 2.5}, "r": {"a": 1, "b": [1.5, None]}},
    {"k": "b", "b": 9223372036854775807, "i": 3, "d": -2.5, "s": "straße", "o": True,
     "y": "1999-12-31", "m": -9999999999.99, "ts": "2025-12-31T00:00:00Z", "f": 0.0, "x": "AP8=",
     "l": ["a", None], "p": {}, "r": {"a": 1, "b": [1.50, None], "c": {"D": "2024-02-29"}}},
    {"k": "c", "b": None, "i": None, "d": None, "s": None, "o": None, "y": None,
     "ts": "2026-03-01T00:00:00Z"},
]  # fmt: skip
# What stands after the aggregates: each is one column of a view by key.
AFTER = [
    "coalesce(max(ts), TIMESTAMP '2000-01-01 00:00:00')", "cast(max(ts) AS STRING)",
    "cast(max(ts) AS DATE)", "date_trunc('month', max(ts))", "year(min(ts))",
    "max(ts) > '2026-02-01'", "max(ts) > TIMESTAMP '2026-02-01 00:00:00'",
    "max(ts) + INTERVAL 1 MONTH", "max(ts) - INTERVAL '1 day 2 hours'", "max(y) + INTERVAL 1 DAY",
    "date_add(max(y), 1)", "max(y) = '2026-02-28'", "datediff(max(ts), min(y))",
    "upper(max(s))", "lower(max(s))", "length(max(s))", "concat(max(s), '-', count(*))",
    "cast(bool_and(o) AS STRING)", "round(sum(i), -1)", "round(avg(d), 1)", "round(sum(d), 2)",
    "max(b) + 1", "max(b) * 2", "sum(i) / count(*)", "sum(i) div 2", "sum(d) % 2", "sum(i) % 4",
    "100.0 * sum(i) / count(*)", "count(*) * 1.5", "cast(max(b) AS INT)", "cast(sum(d) AS INT)",
    "max(s) LIKE 'a\\\\%b'", "max(s) > 1", "max(s) = 5", "nullif(count(*), 1)",
    "CASE WHEN sum(i) > 0 THEN max(ts) END", "greatest(sum(i), 5)",
    "date_format(max(ts), 'MMM yyyy')",
    "unix_micros(max(ts)) - unix_micros(min(ts))", "sqrt(sum(d))", "ln(sum(d))", "-max(b)",
    "sum(i) IN (1, '0')", "if(count(*) > 1, 'many', 'one')", "abs(min(i))", "max(b) > 1e18",
    "sum(m)", "avg(m)", "sum(m) / count(*)", "round(avg(m), 2)", "sum(m) * 1.19", "max(m) > 5",
    "cast(sum(m) AS STRING)", "-min(m)", "coalesce(sum(m), 0)", "sum(m) + 1", "stddev(m)",
    "count(DISTINCT m)", "sum(m * i)", "ceil(sum(m))", "cast(max(m) AS INT)", "sum(m) % 7",
    "min(tiny)", "max(tiny) + 1", "max(f)", "sum(f)", "max(x)", "cast(max(z) AS STRING)",
    "max_by(m, z)", "min_by(x, f)", "max_by(r, ts)", "max_by(r, ts).b[0] + 1", "max_by(r, ts).c.d",
    "max_by(l, ts)", "size(max_by(l, ts))", "max_by(l, ts)[0]", "max_by(p, ts)['b']",
    "array_contains(max_by(l, ts), 'a')", "count(DISTINCT r)", "count(DISTINCT p)",
    "count(DISTINCT f)", "count(DISTINCT x)", "max_by(r, ts) = min_by(r, ts)", "count(l)",
    "sum(sqrt(i))", "avg(sqrt(i))", "var_samp(sqrt(i))", "max(sqrt(i))", "min(sqrt(i))",
]  # fmt: skip
HAVING = [
    "max(ts) > '2026-02-01'", "max(ts) > TIMESTAMP '2026-02-01 00:00:00'", "max(y) < '2025-01-01'",
    "max(s) LIKE 'a\\\\%b'", "count(*) = '1'", "sum(i) / 0 IS NULL",
]  # fmt: skip
# Queries over the view `days` (a DATE key, a TIMESTAMP, text, numbers).
DAYS = (
    "SELECT y, max(ts) AS t, max(s) AS s, sum(i) AS n, sum(d) AS d, max(b) AS b "
    "FROM clicks GROUP BY y"
)
OVER = [
    "SELECT * FROM roots", "SELECT root, n FROM roots WHERE root > 1e300",
    "SELECT r, r.c.d AS d, count(*) AS n FROM nested GROUP BY r, r.c.d", "SELECT * FROM nested",
    "SELECT x, f, tiny, n FROM nested WHERE f = 0 OR x IS NULL", "SELECT p['a'] AS a FROM nested",
    "SELECT l, size(l) AS n, l[0] AS one FROM nested WHERE l IS NULL OR size(l) > 0",
    "SELECT one, count(*) AS n FROM nested LATERAL VIEW OUTER explode(l) t AS one GROUP BY one",
    "SELECT k, v FROM nested LATERAL VIEW explode(p) t AS k, v WHERE v > 0",
    "SELECT y, t FROM days WHERE y < t", "SELECT y FROM days WHERE y > '2020-01-01'",
    "SELECT y + INTERVAL 1 DAY AS next FROM days",
    "SELECT coalesce(t, '2026-01-01') AS t FROM days",
    "SELECT d % 2 AS r, n % 4 AS q, n div 2 AS v FROM days", "SELECT b + 1 AS b FROM days",
    "SELECT cast(b AS INT) AS i, cast(d AS INT) AS j FROM days", "SELECT s FROM days WHERE s > 1",
    "SELECT y, t + INTERVAL 1 MONTH AS t FROM days", "SELECT upper(s) AS s FROM days",
    "SELECT t - INTERVAL '1 day 2 hours' AS t FROM days", "SELECT round(n, -1) AS n FROM days",
    "SELECT n, sum(n) OVER (ORDER BY y) AS running FROM days",
    "SELECT * FROM days WHERE n = (SELECT max(n) FROM days)",
    "SELECT year(y) AS year, count(*) AS days FROM days GROUP BY 1 HAVING count(*) >= 1",
]  # fmt: skip

# A view of which every key is of another type.
NESTED = "SELECT r, l, p, x, f, tiny, count(*) AS n FROM clicks GROUP BY r, l, p, x, f, tiny"
# The root of a negative number is NaN: a key, and the largest of all, and not NULL.
ROOTS = (
    "SELECT sqrt(d) AS root, count(*) AS n, max(sqrt(i)) AS m, min(sqrt(i)) AS l, "
    "max_by(sqrt(i), ts) AS y, count(DISTINCT sqrt(i)) AS c FROM clicks GROUP BY sqrt(d)"
)
# Views over views may be any query.
KEPT_OVER = {
    "ranked": "WITH big AS (SELECT y, n FROM days WHERE n IS NOT NULL) "
    "SELECT y, n, rank() OVER (ORDER BY n DESC) AS r FROM big",
    "either": "SELECT y, 'n' AS what, n AS value FROM days UNION ALL SELECT y, 'b', b FROM days",
    "above": "SELECT y FROM days d WHERE d.n > (SELECT avg(n) FROM days)",
    "newest": "SELECT y, t FROM days QUALIFY row_number() OVER (ORDER BY t DESC) = 1",
}


@pytest.fixture(scope="module")
def compiled(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    items = ", ".join(f"{text} AS x{n}" for n, text in enumerate(AFTER))
    views = [f"CREATE VIEW after AS SELECT k, {items} FROM clicks GROUP BY k;"]
    views += [f"CREATE VIEW days AS {DAYS};", f"CREATE VIEW nested AS {NESTED};"]
    views += [f"CREATE VIEW roots AS {ROOTS};"]
    views += [
        "CREATE VIEW listed AS SELECT k, collect_list(i, 1) AS one, collect_set(i) AS every "
        "FROM clicks GROUP BY k;"
    ]
    views += [f"CREATE VIEW {name} AS {sql};" for name, sql in KEPT_OVER.items()]
    views += [
        f"CREATE VIEW having{n} AS SELECT k, count(*) AS n FROM clicks GROUP BY k HAVING {text};"
        for n, text in enumerate(HAVING)
    ]
    return compile_sql(spark, tmp_path_factory.mktemp("meaning"), STREAM + "\n".join(views))


@pytest.fixture(scope="module")
def parts(compiled: Compiled, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    """Half of the events in a generation, half in speed."""
    made = Parts(compiled, tmp_path_factory.mktemp("state"))
    made.intake("clicks").accept([json.dumps(event).encode() for event in EVENTS[:2]])
    made.catch_up()
    made.intake("clicks").accept([json.dumps(event).encode() for event in EVENTS[2:]])
    epoch = made.epoch("clicks")
    assert epoch is not None
    made.store.commit_epoch(epoch)
    yield made
    made.close()


@pytest.fixture(scope="module")
def events(spark: Any) -> Iterator[Any]:
    lines = spark.sparkContext.parallelize([json.dumps(event) for event in EVENTS])
    spark.read.schema(SCHEMA).json(lines).createOrReplaceTempView("clicks")
    spark.sql(DAYS).createOrReplaceTempView("days")
    spark.sql(NESTED).createOrReplaceTempView("nested")
    spark.sql(ROOTS).createOrReplaceTempView("roots")
    yield spark
    for name in ("clicks", "days", "nested", "roots"):
        spark.catalog.dropTempView(name)


def expected(spark: Any, sql: str) -> list[dict[str, Any]]:
    rows = [
        {name: shown(value) for name, value in row.asDict(recursive=True).items()}
        for row in spark.sql(sql).collect()
    ]
    return sorted(rows, key=repr)


def shown(value: Any) -> Any:
    """As an answer shows it."""
    if isinstance(value, datetime):
        text = value.replace(tzinfo=value.tzinfo or UTC).isoformat()
        return text.replace("+00:00", "Z")
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, list):
        return [shown(part) for part in value]
    if isinstance(value, dict):
        return {name: shown(part) for name, part in sorted(value.items())}
    if isinstance(value, float):
        return f"{value + 0.0:.9g}"  # NaN is equal to NaN here
    return value.isoformat() if hasattr(value, "isoformat") else value


def answered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(({name: shown(value) for name, value in row.items()} for row in rows), key=repr)


def test_expressions_after_aggregation_are_sparks(parts: Parts, events: Any) -> None:
    items = ", ".join(f"{text} AS x{n}" for n, text in enumerate(AFTER))
    wanted = expected(events, f"SELECT k, {items} FROM clicks GROUP BY k")
    given = answered(parts.reader.view("after").rows)
    assert len(given) == len(wanted) == 3
    for row, other in zip(given, wanted, strict=True):
        differing = [
            (AFTER[int(name[1:])], row[name], other[name])
            for name in row
            if name != "k" and row[name] != other[name]
        ]
        assert differing == []


@pytest.mark.parametrize("number", range(len(HAVING)))
def test_having_keeps_the_groups_that_spark_keeps(parts: Parts, events: Any, number: int) -> None:
    sql = f"SELECT k, count(*) AS n FROM clicks GROUP BY k HAVING {HAVING[number]}"
    assert answered(parts.reader.view(f"having{number}").rows) == expected(events, sql)


@pytest.mark.parametrize("sql", OVER)
def test_queries_over_a_view_are_sparks(parts: Parts, events: Any, sql: str) -> None:
    assert answered(parts.reader.sql(sql).rows) == expected(events, sql)


@pytest.mark.parametrize("name", KEPT_OVER)
def test_any_query_over_views_can_be_a_view(parts: Parts, events: Any, name: str) -> None:
    wanted = expected(events, KEPT_OVER[name])
    assert answered(parts.reader.view(name).rows) == wanted
    assert answered(parts.reader.sql(f"SELECT * FROM {name}").rows) == wanted


def test_a_column_says_that_a_list_behind_it_was_cut(parts: Parts) -> None:
    whole = parts.reader.view("listed").columns
    assert {name: info.cut for name, info in whole.items()} == {
        "k": False,
        "one": True,
        "every": False,
    }
    sql = "SELECT k, size(one) + 1 AS n, one[0] AS i, size(every) AS m FROM listed"
    computed = parts.reader.sql(sql).columns
    assert {name for name, info in computed.items() if info.cut} == {"n", "i"}
    assert not parts.reader.view("listed", {"k": "b"}).columns["one"].cut


def test_the_audit_agrees(parts: Parts, compiled: Compiled) -> None:
    for view in [view for view in parts.plan.shown_views if view.kept]:
        audit = audit_view(parts.store, parts.layout, parts.plan, view.name, compiled.project)
        assert audit.differences == 0, audit
