"""Whole queries over relations give the rows that Spark gives."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from chance import drawn

from certified.calls import NESTED, PLAIN
from certified.edges import RELATION, duck, edges, in_spark
from certified.test_expressions import OBJECT, type_text
from headrace.certified.aggregates import AGGREGATES, ORDERED_SETS, SYNONYMS
from headrace.certified.relation import AnswerColumn, ReadRelation
from headrace.certified.select import compile_query
from headrace.core.errors import HeadraceError
from headrace.core.origin import Origin
from headrace.define.dialect import parse_query
from headrace.serving.engine import run

QUERIES = [
    "SELECT o1, count(*) AS n, sum(i1) AS s, avg(b1) AS a, sum(m1) AS m FROM edges GROUP BY o1",
    "SELECT s1 AS k, max(t1) AS t FROM edges GROUP BY k HAVING t > '2000-01-01' ORDER BY t DESC, k",
    "SELECT o1, o2, count(DISTINCT i1) AS n FROM edges GROUP BY ROLLUP (o1, o2)",
    "SELECT o1, o2, sum(i1) AS n FROM edges GROUP BY o1, o2 WITH CUBE",
    "SELECT o1, i1 % 3 AS k, count(*) AS n FROM edges GROUP BY GROUPING SETS ((o1), (i1 % 3), ())",
    "SELECT DISTINCT o1, i1 > 0 AS positive FROM edges",
    "SELECT i1, row, rank() OVER (PARTITION BY o1 ORDER BY i1 DESC, row) AS r FROM edges",
    "SELECT row, i1 FROM edges QUALIFY row_number() OVER (PARTITION BY o1 ORDER BY row) <= 2",
    "SELECT row, sum(i1) OVER (ORDER BY row ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s "
    "FROM edges",
    "SELECT row, lag(i1, 2, 0) OVER (ORDER BY row) AS a, lead(s1) OVER (ORDER BY row) AS b "
    "FROM edges",
    "SELECT row, ntile(4) OVER (ORDER BY row) AS q, percent_rank() OVER (ORDER BY row) AS p, "
    "cume_dist() OVER (ORDER BY row) AS c, dense_rank() OVER (ORDER BY o1, row) AS d FROM edges",
    "SELECT row, first_value(i1) IGNORE NULLS OVER (ORDER BY row) AS f, "
    "last_value(s1) OVER (PARTITION BY o1 ORDER BY row) AS l FROM edges",
    "SELECT row, i1, 100.0 * i1 / sum(i1) OVER () AS share FROM edges WHERE i1 > 0",
    "WITH big AS (SELECT row, b1 FROM edges WHERE b1 > 10), few AS (SELECT row FROM big) "
    "SELECT count(*) AS n FROM few",
    "SELECT x.n FROM (SELECT count(*) AS n, o1 FROM edges GROUP BY o1) AS x WHERE x.o1",
    "SELECT row FROM edges WHERE i1 = (SELECT max(i1) FROM edges)",
    "SELECT row FROM edges e WHERE EXISTS "
    "(SELECT 1 FROM edges f WHERE f.i1 = e.i1 AND f.row <> e.row)",
    "SELECT row FROM edges WHERE i1 IN (SELECT i2 FROM edges WHERE i2 IS NOT NULL)",
    "SELECT a.row, b.row AS other FROM edges a JOIN edges b ON a.i1 = b.i2 AND a.row < b.row",
    "SELECT a.row, b.i2 FROM edges a LEFT JOIN edges b ON a.row = b.row AND b.i2 > 5",
    "SELECT a.row AS l, b.row AS r FROM edges a FULL JOIN (SELECT row FROM edges WHERE row > 9) b "
    "ON a.row = b.row",
    "SELECT row FROM edges a LEFT SEMI JOIN (SELECT i2 AS i1 FROM edges) b USING (i1)",
    "SELECT row FROM edges a LEFT ANTI JOIN edges b ON a.i1 = b.i2",
    "SELECT row, a.i1, b.i2 FROM edges a JOIN edges b USING (row)",
    "SELECT * EXCEPT (d1, d2) FROM edges WHERE row < 5",
    "SELECT i1 AS x FROM edges UNION SELECT b1 FROM edges",
    "SELECT i1 AS x FROM edges UNION ALL SELECT 1.5 ORDER BY x LIMIT 7",
    "SELECT i1 FROM edges INTERSECT SELECT i2 FROM edges",
    "SELECT i1 FROM edges EXCEPT SELECT i2 FROM edges",
    "SELECT x.a, x.b FROM VALUES (1, 'x'), (2, NULL) AS x(a, b)",
    "SELECT s1, i1 FROM edges ORDER BY s1 NULLS LAST, i1 DESC, row LIMIT 10 OFFSET 3",
    "SELECT i1 + 1 AS a, a * 2 AS b FROM edges",
    "SELECT o1, max_by(row, row) AS newest, min_by(s1, row) AS first FROM edges GROUP BY o1",
    "SELECT o1, stddev(i2) AS s, var_pop(i2) AS v, corr(i1, row) AS c, median(row) AS m, "
    "percentile(row, 0.9) AS p FROM edges WHERE abs(i1) < 1000 AND abs(i2) < 1000 GROUP BY o1",
    "SELECT count(*) FILTER (WHERE i1 > 0) AS n, sum(CASE WHEN o1 THEN 1 ELSE 0 END) AS m, "
    "count(i1, i2) AS k, count(DISTINCT i1, o1) AS d, count_if(o1) AS c FROM edges",
    "SELECT date_trunc('month', t1) AS month, count(*) AS n FROM edges GROUP BY 1 ORDER BY 1",
    "SELECT sum(m1) / count(*) AS mean, avg(m1) AS a, round(avg(m1), 1) AS r, max(m1) FROM edges",
    "SELECT o1, count(*) AS n FROM edges GROUP BY ALL",
    "SELECT row, sum(i1) OVER w AS s, lag(row) OVER (w) AS l FROM edges "
    "WINDOW w AS (PARTITION BY o1 ORDER BY row)",
    "SELECT row, count(*) OVER (ORDER BY t1 RANGE BETWEEN INTERVAL 9 YEARS PRECEDING AND "
    "INTERVAL 1 YEAR FOLLOWING) AS n, sum(row) OVER (PARTITION BY o1 ORDER BY y1 DESC "
    "RANGE BETWEEN INTERVAL 400 DAYS PRECEDING AND CURRENT ROW) AS s FROM edges",
    "SELECT o1, percentile_cont(0.3) WITHIN GROUP (ORDER BY row) AS p, percentile_cont(0.3) "
    "WITHIN GROUP (ORDER BY row DESC) FILTER (WHERE i1 > 0) AS q FROM edges GROUP BY o1",
    "SELECT o1, listagg(s1, '|') WITHIN GROUP (ORDER BY i1 DESC, s1) AS a, string_agg(DISTINCT s1) "
    "WITHIN GROUP (ORDER BY s1 DESC) AS b FROM edges GROUP BY o1",
    "SELECT o1, o2, grouping(o1) AS g, grouping_id() AS a, grouping_id(o1, o2) AS b, count(*) AS n "
    "FROM edges GROUP BY CUBE (o1, o2)",
    "SELECT o1, grouping(o2) AS g, grouping_id() AS i, count(*) AS n FROM edges "
    "GROUP BY GROUPING SETS ((o2, o1), (o1), ()) HAVING g = 1",
    "SELECT * FROM (SELECT row, i1 FROM edges) NATURAL LEFT JOIN "
    "(SELECT s1, row FROM edges WHERE row > 3)",
    "SELECT r1, l1, count(*) AS n, count(DISTINCT g1) AS d FROM edges GROUP BY r1, l1",
    "SELECT p1, sum(row) AS n FROM edges GROUP BY p1",
    "SELECT g1 AS k, max_by(r1, row) AS r FROM edges GROUP BY k HAVING count(*) > 0",
    "SELECT r1.c.d AS d, r1.a, count(*) AS n FROM edges GROUP BY r1.c.d, r1.a",
    "SELECT DISTINCT l1, x1, z1 FROM edges",
    "SELECT count(DISTINCT r1) AS a, count(DISTINCT p1) AS b, count(DISTINCT x1, z1) AS c "
    "FROM edges",
    "SELECT row, tag FROM edges LATERAL VIEW explode(l1) t AS tag WHERE tag <> 'a'",
    "SELECT row, t.tag, u.m FROM edges LATERAL VIEW OUTER explode(l1) t AS tag "
    "LATERAL VIEW OUTER explode(r1.b) u AS m",
    "SELECT k, sum(v) AS n, count(*) AS m FROM edges LATERAL VIEW explode(p1) t AS k, v GROUP BY k",
    "SELECT col, count(*) AS n FROM edges LATERAL VIEW explode(g1) t GROUP BY col",
    "SELECT e.row, f.row AS other FROM edges e JOIN edges f ON e.l1 = f.l2",
    "SELECT row FROM edges e LEFT SEMI JOIN edges f ON e.r1 <=> f.r2",
    "SELECT row FROM edges WHERE l1 IN (SELECT l2 FROM edges WHERE l2 IS NOT NULL)",
    "SELECT l1 FROM edges UNION SELECT l2 FROM edges",
    "SELECT r1 FROM edges INTERSECT SELECT r2 FROM edges",
    "SELECT x1, max(z1) AS z, min(x2) AS x FROM edges GROUP BY x1 ORDER BY x1",
    "SELECT z1, x1 FROM edges ORDER BY z1 DESC, x1, row LIMIT 9",
    "WITH n AS (SELECT row, r1.c AS c FROM edges) SELECT n.c.D AS d, n.c FROM n",
    "SELECT o1, sum(w1) AS s, sum(DISTINCT w1) AS d, avg(w2) AS a, sum(w1) FILTER (WHERE w1 < 9) "
    "AS f, sum(CAST(m1 AS DECIMAL(38,0))) AS n FROM edges GROUP BY o1",
    "SELECT sum(CAST(60000000000000000000 AS DECIMAL(38,18))) AS s, avg(CAST(9e19 AS "
    "DECIMAL(38,18))) AS a FROM edges",
    "SELECT bool_and(o1) AS a, bool_or(o1) AS b, min(y1) AS c, max(s1) AS d FROM edges",
    "SELECT o1, stddev_samp(i2) AS a, std(i2) AS b, stddev_pop(i2) AS c, var_samp(i2) AS d, "
    "variance(i2) AS e, mean(i2) AS f, covar_samp(i1, row) AS g, covar_pop(i1, row) AS h, "
    "every(o2) AS i, any(o2) AS j, some(o2) AS k, any(o2) FILTER (WHERE i1 > 0) AS l FROM edges "
    "WHERE abs(i1) < 1000 AND abs(i2) < 1000 GROUP BY o1",
    "SELECT row, nth_value(i1, 2) OVER (ORDER BY row) AS n, first(i1) OVER (ORDER BY row) AS f, "
    "last(i1) OVER (ORDER BY row) AS l FROM edges",
]


def test_every_aggregate_of_the_page_is_compared() -> None:
    called = set(re.findall(r"(\w+)\(", " ".join((*QUERIES, *PLAIN, *NESTED))))
    assert {*AGGREGATES, *ORDERED_SETS, *SYNONYMS} - called == set()


@pytest.fixture(scope="module")
def both(spark: Any) -> Iterator[tuple[Any, Any]]:
    table = edges(40, drawn("select"))
    in_spark(spark, table)
    yield spark, duck(table)
    spark.catalog.dropTempView("edges")


def rows_of(table: pa.Table, ordered: bool) -> list[tuple[Any, ...]]:
    """Rows with times as numbers, in one order if the query asks for none."""
    columns = []
    for column in table.columns:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        columns.append([_rounded(value) for value in column.to_pylist()])
    rows = list(zip(*columns, strict=True))
    return rows if ordered else sorted(rows, key=repr)


def _rounded(value: Any) -> Any:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, float):
        # As text, because NaN is not equal to itself here.
        return str(float(f"{value:.9g}") + 0.0 if math.isfinite(value) else value)
    return value


@pytest.mark.parametrize("query", QUERIES)
def test_queries_give_the_rows_that_spark_gives(both: tuple[Any, Any], query: str) -> None:
    spark, connection = both
    made = compile_query(
        parse_query(query, Origin("test", 1)), lambda name: RELATION if name == "edges" else None
    )
    frame = spark.sql(query)
    assert [type_text(c.type) for c in made.columns] == [
        type_text(field.dataType.simpleString()) for field in frame.schema
    ]
    given = connection.sql(made.sql).to_arrow_table()
    ordered = "ORDER BY" in query.rpartition(")")[2]
    assert rows_of(given, ordered) == rows_of(frame.toArrow(), ordered)


REFUSED = {
    "SELECT x FROM edges": "there is no column 'x'",
    "SELECT i1 FROM edge": "there is no view 'edge'",
    "SELECT e.i1 FROM edges e JOIN edges f ON i1 = 1": "column reference 'i1' is ambiguous",
    "SELECT i1 AS a, i2 AS a FROM edges": "two columns are called 'a'",
    "SELECT i1 FROM edges a, edges a": "two relations are called 'a'",
    "SELECT i1 FROM edges ORDER BY 3": "position 3 is not in the select list",
    "SELECT r1 FROM edges ORDER BY r1": f"ordering by {OBJECT} is not available over views",
    "SELECT x FROM edges LATERAL VIEW explode(s1) t AS x": "explode of STRING is not available "
    "over views",
    "SELECT x FROM edges LATERAL VIEW posexplode(l1) t AS p, x": "LATERAL with anything but VIEW "
    "explode(…) is not available over views",
    "SELECT x FROM edges LATERAL VIEW explode(l1) t AS x, y": "the number of column names in the "
    "alias must be 1, got 2",
    "SELECT row FROM edges e JOIN edges f USING (p1)": "USING with columns of type "
    "MAP<STRING, INT> and MAP<STRING, INT> is not available over views",
    "SELECT i1 FROM edges LIMIT i2": "LIMIT requires a whole number",
    "SELECT i1 FROM edges UNION SELECT i1, i2 FROM edges": "both sides of UNION must have "
    "the same number of columns, got 1 and 2",
    "SELECT i1 FROM edges TABLESAMPLE (5 ROWS)": "a relation with anything other "
    "than an alias is not available over views",
    "SELECT i1 FROM text.`/etc/passwd`": "there is no view '/etc/passwd'",
    "SELECT sum(i1) OVER w FROM edges": "there is no window 'w'",
    "SELECT sum(i1) OVER w FROM edges WINDOW w AS (ORDER BY row), w AS (ORDER BY i1)": "window "
    "'w' is defined twice",
    "SELECT sum(i1) OVER (w ORDER BY row) FROM edges WINDOW w AS (PARTITION BY o1)": "a window "
    "based on another window is not available over views",
    "SELECT sum(i1) OVER (ORDER BY row RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) "
    "FROM edges": "a window frame of INTERVAL '1' DAY with ORDER BY INT is not available over "
    "views",
    "SELECT sum(i1) OVER (ORDER BY t1 RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND INTERVAL 1 DAY "
    "FOLLOWING) FROM edges": "both bounds of a window frame must have the same interval unit",
    "SELECT listagg(s1) FROM edges": "'listagg' without WITHIN GROUP (ORDER BY …) is not available "
    "over views",
    "SELECT listagg(s1) WITHIN GROUP (ORDER BY i1) FROM edges": "listagg in an order that may "
    "have ties is not available over views",
    "SELECT o1, grouping(o1) FROM edges GROUP BY o1": "grouping requires GROUP BY with ROLLUP, "
    "CUBE or GROUPING SETS",
    "SELECT grouping_id(o2) FROM edges GROUP BY CUBE (o1, o2)": "grouping_id expects all "
    "grouping columns in order, got o2",
    "SELECT * FROM (SELECT i1 FROM edges) NATURAL JOIN (SELECT i2 FROM edges)": "the sides of a "
    "NATURAL JOIN have no column in common",
    "SELECT * FROM edges PIVOT (sum(i1) FOR s1 IN ('a', 'b'))": "PIVOT is not available over views",
    "SELECT TRY_CAST(s1 AS INT) FROM edges": "TRY_CAST is not available over views",
    "SELECT s1 RLIKE 'a(?=b)' FROM edges": "'(' at position 2 of the pattern "
    "'a(?=b)' is not available over views",
    "SELECT row_number() FROM edges": "'row_number' without OVER is not available over views",
    "WITH RECURSIVE r AS (SELECT 1 AS a) SELECT a FROM r": "WITH RECURSIVE is not available over "
    "views",
}


@pytest.mark.parametrize("query", REFUSED)
def test_mistakes_have_their_sentence(query: str) -> None:
    with pytest.raises(HeadraceError) as refused:
        compile_query(
            parse_query(query, Origin("test", 1)),
            lambda name: RELATION if name == "edges" else None,
            ["edges"],
        )
    assert refused.value.message == REFUSED[query]


def test_a_list_may_be_chosen_or_left_out() -> None:
    lists = ReadRelation("lists", (AnswerColumn("tags", "ARRAY<STRING>"), AnswerColumn("n", "INT")))
    query = parse_query("SELECT CASE WHEN n > 1 THEN tags END AS t FROM lists", Origin("test", 1))
    made = compile_query(query, lambda name: lists)
    assert made.columns[0].type == "ARRAY<STRING>"
    rows = pa.table({"tags": [["a"], ["b"]], "n": pa.array([1, 2], pa.int32())})
    assert run(made.sql, {"lists": rows}).to_pylist() == [{"t": None}, {"t": ["b"]}]


GROWING = {
    "aliases": "SELECT i1 AS a0, " + ", ".join(f"a{n} + a{n} AS a{n + 1}" for n in range(60)),
    "calls": "SELECT " + "date_add(" * 25 + "y1" + ", 1)" * 25 + " AS x",
    "ctes": "WITH c0 AS (SELECT i1 FROM edges), "
    + ", ".join(f"c{n + 1} AS (SELECT x.i1 FROM c{n} x, c{n} y)" for n in range(40))
    + " SELECT c40.i1",
    "sums": "SELECT " + " + ".join(["i1"] * 3_000) + " AS x",
}


@pytest.mark.parametrize("name", GROWING)
def test_a_query_that_grows_when_it_is_written_out_is_refused(name: str) -> None:
    source = "c40" if name == "ctes" else "edges"
    with pytest.raises(HeadraceError, match=r"too large|too deeply"):
        compile_query(
            parse_query(f"{GROWING[name]} FROM {source}", Origin("test", 1)),
            lambda name: RELATION if name == "edges" else None,
        )
