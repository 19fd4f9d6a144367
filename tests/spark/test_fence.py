"""The fence lets through what computes and refuses what acts, reads elsewhere or grows without bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.core.errors import BadQuery, HeadraceError, LimitReached, Refused
from headrace.spark import fence_tables
from headrace.spark.fence import check
from headrace.spark.fence_text import FenceLimits, check_text

GOOD = """
SELECT user, count(*) AS n FROM clicks GROUP BY user HAVING count(*) > 0 ORDER BY n DESC LIMIT 3 OFFSET 0
SELECT DISTINCT url FROM clicks;
WITH a AS (SELECT * FROM clicks), b(x) AS (SELECT user FROM a) SELECT x FROM b
WITH a AS (WITH b AS (SELECT 1 AS x) SELECT x FROM b) SELECT * FROM a
SELECT row_number() OVER w, sum(ms) OVER (PARTITION BY user ORDER BY ms ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM clicks WINDOW w AS (PARTITION BY user ORDER BY ms)
SELECT sum(ms) OVER (ORDER BY ms RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM clicks
SELECT CASE WHEN ms IN (1, 2) THEN 'a' ELSE cast(ms AS STRING) END, ms BETWEEN 1 AND 2, -ms, ms % 2, ms::double FROM clicks
SELECT CASE user WHEN 'ann' THEN 1 END, try_cast(url AS int), url IS NOT NULL, NOT (ms = 1) FROM clicks
SELECT a.user, b.section FROM clicks a LEFT JOIN sections b ON a.url = b.url
SELECT * FROM clicks JOIN sections USING (url)
SELECT * FROM clicks NATURAL JOIN sections
SELECT * FROM clicks a CROSS JOIN sections b
SELECT * FROM clicks LEFT SEMI JOIN sections ON clicks.url = sections.url
SELECT (SELECT max(ms) FROM clicks) AS m, EXISTS (SELECT 1 FROM sections) FROM clicks
SELECT * FROM clicks WHERE url IN (SELECT url FROM sections)
SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t(x, y)
SELECT * FROM VALUES (upper('a')), (lower('B')) AS t(x)
SELECT user, explode(array(1, 2)) AS x FROM clicks
SELECT user, x FROM clicks LATERAL VIEW OUTER explode(split(url, '/')) t AS x
SELECT user, x.col FROM clicks, LATERAL explode(array(1, 2)) x
SELECT user, y FROM clicks, LATERAL (SELECT clicks.ms + 1 AS y)
SELECT transform(array(1, 2), x -> x + 1), aggregate(array(1), 0, (a, x) -> a + x), filter(array(1), x -> x > 0)
SELECT struct(1 AS a).a, array(1)[0], map('a', 1)['a'], named_struct('a', 1)
SELECT count(*) FILTER (WHERE ms > 1), count(DISTINCT user), percentile_cont(0.5) WITHIN GROUP (ORDER BY ms) FROM clicks
SELECT first(ms) IGNORE NULLS, any_value(ms), last(url), max_by(user, ms), listagg(user, ',') FROM clicks
SELECT user, url, count(*), grouping(user) FROM clicks GROUP BY ROLLUP(user, url)
SELECT user, url, count(*) FROM clicks GROUP BY GROUPING SETS ((user), (url), ())
SELECT user, count(*) FROM clicks GROUP BY ALL ORDER BY ALL
SELECT user FROM clicks UNION SELECT url FROM clicks EXCEPT SELECT section FROM sections INTERSECT ALL SELECT url FROM sections
SELECT * FROM (SELECT user, ms FROM clicks) PIVOT (sum(ms) FOR user IN ('ann', 'bob'))
SELECT * FROM (SELECT user, ms, ms AS more FROM clicks) UNPIVOT (v FOR k IN (ms, more))
SELECT * FROM clicks TABLESAMPLE (50 PERCENT)
SELECT /*+ BROADCAST(s) */ * FROM clicks c JOIN sections s ON c.url = s.url
SELECT * EXCEPT (ms) FROM clicks
SELECT clicks.*, date '2020-01-01', timestamp '2020-01-01 00:00:00', interval '1' day, X'AB', 1.5, 1e3, null, true FROM clicks
SELECT current_date, current_timestamp, now(), extract(hour FROM ts), date_trunc('hour', ts), timestampadd(HOUR, 1, ts) FROM clicks
SELECT trim(BOTH 'x' FROM url), substring(url FROM 1 FOR 2), position('a' IN url), overlay(url PLACING 'x' FROM 1) FROM clicks
SELECT * FROM clicks WHERE url RLIKE 'a' OR url ILIKE 'b' OR url LIKE ANY ('a', 'b') OR ms IS DISTINCT FROM 3 OR ms <=> 3
SELECT ms & 1, ms | 1, ms ^ 1, ~ms, ms << 1, ms DIV 2, url || 'x' FROM clicks
SELECT window(ts, '1 hour').start AS hour, count(*) FROM clicks GROUP BY window(ts, '1 hour')
SELECT session_window(ts, '5 minutes') AS s, count(*) FROM clicks GROUP BY session_window(ts, '5 minutes')
SELECT * FROM clicks QUALIFY row_number() OVER (PARTITION BY user ORDER BY ms) = 1
FROM clicks |> WHERE ms > 1 |> AGGREGATE count(*) AS n GROUP BY user |> ORDER BY n
TABLE clicks
SELECT hll_sketch_estimate(hll_sketch_agg(user)), approx_count_distinct(user), approx_percentile(ms, 0.5) FROM clicks
SELECT get_json_object('{"a": 1}', '$.a'), from_json('{"a": 1}', 'a INT').a, to_json(struct(ms)) FROM clicks
SELECT repeat('-', 10), lpad(user, 5, ' '), round(ms / 3, 2), round(ms, -1), sequence(1, 5) FROM clicks
SELECT shout(user) FROM clicks -- a comment; with a semicolon
SELECT ';', "a ; b", '--', '/*', 'it''s', 'it\\'s', r'\\', /* a /* nested */ ; comment */ 1
SELECT `user`, `url` FROM `clicks`
SELECT 'reflect', 'SELECT TRANSFORM', ms AS reflect FROM clicks
""".strip().splitlines()

HOSTILE = """
SELECT * FROM text.`/etc/passwd`
SELECT * FROM parquet.`/tmp/x`
SELECT * FROM csv.`file:///etc/passwd`
SELECT * FROM `text`.`/etc/passwd`
SELECT * FROM `/etc/passwd`
SELECT * FROM default.clicks
SELECT * FROM spark_catalog.default.clicks
SELECT * FROM secrets
SELECT * FROM clicks WITH (path = '/etc')
SELECT * FROM (SELECT * FROM (SELECT * FROM text.`/etc/passwd`))
WITH clicks AS (SELECT * FROM text.`/etc/passwd`) SELECT * FROM clicks
WITH a AS (SELECT 1), b AS (SELECT * FROM secrets) SELECT * FROM a
SELECT (WITH hidden AS (SELECT 1) SELECT 1), x FROM hidden
SELECT (SELECT value FROM text.`/etc/passwd` LIMIT 1)
SELECT * FROM clicks WHERE EXISTS (SELECT 1 FROM text.`/etc/passwd`)
SELECT * FROM clicks WHERE url IN (SELECT value FROM text.`/etc/passwd`)
SELECT * FROM clicks ORDER BY (SELECT max(value) FROM text.`/etc/passwd`)
SELECT CASE WHEN (SELECT count(*) FROM text.`/etc/passwd`) > 1 THEN 1 END
SELECT upper(concat((SELECT max(value) FROM text.`/etc/passwd`), 'x'))
SELECT user FROM clicks GROUP BY user HAVING count(*) > (SELECT count(*) FROM text.`/etc/passwd`)
SELECT * FROM VALUES ((SELECT max(value) FROM text.`/etc/passwd`)) AS t(x)
SELECT 1 UNION ALL SELECT value FROM text.`/etc/passwd`
SELECT * FROM clicks, LATERAL (SELECT * FROM text.`/etc/passwd`)
SELECT sum(ms) OVER w FROM clicks WINDOW w AS (ORDER BY reflect('java.lang.System', 'nanoTime'))
SELECT reflect('java.lang.System', 'getenv', 'HOME')
SELECT java_method('java.lang.Runtime', 'getRuntime')
SELECT try_reflect('java.lang.System', 'getProperty', 'user.home')
SELECT ReFlEcT('java.lang.System', 'nanoTime')
SELECT `reflect`('java.lang.System', 'nanoTime')
SELECT /* x */ reflect /* y */ ('java.lang.System', 'nanoTime')
SELECT system.builtin.reflect('java.lang.System', 'nanoTime')
SELECT transform(array(1), x -> reflect('java.lang.System', 'nanoTime'))
SELECT count(*) FILTER (WHERE reflect('java.lang.System', 'nanoTime') = '1') FROM clicks
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY reflect('java.lang.System', 'nanoTime')) FROM clicks
SELECT * FROM clicks a JOIN clicks b ON reflect('java.lang.System', 'nanoTime') = a.user
SELECT * FROM clicks LATERAL VIEW explode(array(reflect('java.lang.System', 'nanoTime'))) t AS x
SELECT * FROM clicks LATERAL VIEW java_method('java.lang.System', 'nanoTime') t AS x
SELECT * FROM (SELECT user, ms FROM clicks) PIVOT (sum(ms) FOR user IN (reflect('java.lang.System', 'nanoTime') AS a))
SELECT IDENTIFIER('reflect')('java.lang.System', 'nanoTime')
SELECT * FROM IDENTIFIER('text.`/etc/passwd`')
SELECT * FROM IDENTIFIER('sec' || 'rets')
FROM clicks |> SELECT reflect('java.lang.System', 'nanoTime')
FROM clicks |> UNION ALL (SELECT * FROM text.`/etc/passwd`)
SELECT ｒeflect('java.lang.System', 'nanoTime')
SELECT TRANSFORM(user) USING 'cat' AS (x) FROM clicks
FROM clicks MAP user USING 'cat' AS x
SELECT '${env:HOME}'
SELECT ${system:user.home}
SELECT $$ text $$
SELECT * FROM range(1000000000000)
SELECT * FROM clicks, LATERAL range(10)
SELECT * FROM sql_keywords()
SELECT * FROM python_worker_logs()
SELECT sequence(1, 50000000)
SELECT sequence(1, cast('50000000' AS int))
SELECT repeat('x', 500000000)
SELECT repeat('x', ms) FROM clicks
SELECT space(1000000000)
SELECT lpad('x', 1000000000, ' ')
SELECT array_repeat(1, 1000000000)
SELECT round(1.5D, 2000000000)
SELECT format_string('%1000000000d', 1)
SELECT explode(sequence(1, 1000000000))
SELECT input_file_name() FROM clicks
SELECT _metadata.file_path FROM clicks
SELECT clicks.`_METADATA` FROM clicks
SELECT _metadata.* FROM clicks
SELECT current_user()
SELECT current_database(), version()
SELECT raise_error('x')
SELECT assert_true(false)
SELECT from_xml('<a/>', 'a INT')
SELECT xpath('<a/>', '/a')
SELECT aes_encrypt('a', '0000111122223333')
SELECT :parameter
SELECT ?
SELECT * FROM clicks VERSION AS OF 3
SELECT * FROM clicks TIMESTAMP AS OF '2020-01-01'
SELECT * FROM STREAM clicks
SELECT * FROM STREAM(clicks)
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT * FROM t
SELECT /*+ REPARTITION(100000) */ * FROM clicks
SELECT 1; SELECT 2
SELECT 1; DROP TABLE clicks
SELECT 1 /* ' */; DROP TABLE clicks -- '
SET spark.sql.ansi.enabled = true
SET VAR x = 1
RESET
ADD JAR '/tmp/evil.jar'
ADD FILE '/etc/passwd'
LIST FILES
CREATE TEMPORARY FUNCTION f AS 'java.lang.Object'
CREATE FUNCTION f() RETURNS INT RETURN 1
CREATE TEMPORARY VIEW v AS SELECT 1
CREATE TABLE t (x INT) USING parquet LOCATION '/tmp/t'
CREATE TABLE t AS SELECT 1
CACHE TABLE clicks
CACHE TABLE x AS SELECT 1
UNCACHE TABLE clicks
INSERT OVERWRITE DIRECTORY '/tmp/out' USING parquet SELECT 1
INSERT INTO clicks SELECT * FROM clicks
DELETE FROM clicks
UPDATE clicks SET ms = 1
MERGE INTO clicks USING sections ON true WHEN MATCHED THEN DELETE
TRUNCATE TABLE clicks
DROP VIEW clicks
ALTER VIEW clicks RENAME TO c
LOAD DATA INPATH '/etc/passwd' INTO TABLE clicks
EXECUTE IMMEDIATE 'SELECT 1'
BEGIN SELECT 1; END
BEGIN DECLARE x INT DEFAULT 1; WHILE true DO SET x = x + 1; END WHILE; END
DECLARE x INT DEFAULT 1
EXPLAIN SELECT 1
DESCRIBE clicks
DESCRIBE QUERY SELECT 1
SHOW TABLES
SHOW FUNCTIONS
USE default
USE CATALOG spark_catalog
CALL system.procedure()
REFRESH TABLE clicks
REFRESH '/etc'
ANALYZE TABLE clicks COMPUTE STATISTICS
COMMENT ON TABLE clicks IS 'x'
FROM clicks INSERT OVERWRITE DIRECTORY '/tmp/out' USING csv SELECT *
WITH a AS (SELECT 1) INSERT INTO clicks SELECT * FROM a
""".strip().splitlines()


@pytest.fixture(scope="module")
def shop(spark: Any) -> Iterator[Any]:
    clicks = spark.sql(
        "SELECT * FROM VALUES ('ann', '/a', 1L, timestamp '2020-01-01 00:00:00'),"
        " ('bob', '/b', 2L, timestamp '2020-01-01 01:00:00') AS t(user, url, ms, ts)"
    )
    clicks.createOrReplaceTempView("clicks")
    spark.sql("SELECT '/a' AS url, 'news' AS section").createOrReplaceTempView("sections")
    spark.sql("SELECT 'hidden' AS x").createOrReplaceTempView("secrets")
    spark.udf.register("shout", lambda text: text.upper())
    yield spark
    for name in ("clicks", "sections", "secrets"):
        spark.catalog.dropTempView(name)
    spark.sql("DROP TEMPORARY FUNCTION shout")


def fenced(spark: Any, text: str) -> None:
    check(spark, text, relations=["clicks", "Sections"], functions=["shout"])


@pytest.mark.parametrize("text", GOOD)
def test_good_query_is_let_through_and_runs(shop: Any, text: str) -> None:
    fenced(shop, text)
    shop.sql(text).collect()


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_statement_is_refused_with_a_sentence(shop: Any, text: str) -> None:
    with pytest.raises((Refused, BadQuery)) as caught:
        fenced(shop, text)
    assert caught.value.message.endswith("}") or len(caught.value.message.split()) >= 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT " + "(" * 3000 + "1" + ")" * 3000, "the query is nested deeper than 64 levels"),
        ("SELECT " + "CASE WHEN 1=1 THEN " * 70, "the query is nested deeper than 64 levels"),
        ("SELECT CAST(1 AS " + "ARRAY<" * 70, "the query is nested deeper than 64 levels"),
        ("SELECT " + "1+" * 9000 + "1", "the query is too complex to be read"),
        ("SELECT " + "NOT " * 4000 + "true", "the query is too complex to be read"),
        ("SELECT '" + "x" * 10_001 + "'", "a text in the query is longer than 10,000 characters"),
        ("SELECT 1 IN (" + "1," * 1000 + "1)", "a list in the query has more than 1,000 values"),
        ("SELECT " + "a," * 4999 + "a", "the query has more than 5,000 parts"),
        ("x" * 20_001, "the query has 20,001 characters, and 20,000 are the limit"),
    ],
    ids=["parentheses", "case", "types", "sum", "not", "text", "list", "parts", "length"],
)
def test_oversized_query_reaches_a_limit(shop: Any, text: str, message: str) -> None:
    with pytest.raises(LimitReached) as caught:
        fenced(shop, text)
    assert caught.value.message == message


@pytest.mark.parametrize(
    "text", ["SELECT 'a", "SELECT `a", "SELECT /* a", 'SELECT "a', r"SELECT 'a\'"]
)
def test_open_quote_or_comment_cannot_be_read(text: str) -> None:
    with pytest.raises(BadQuery):
        check_text(text, FenceLimits())


def test_parentheses_in_texts_and_comments_are_no_nesting() -> None:
    check_text(
        "SELECT '" + "(" * 500 + "' -- " + "(" * 500 + "\n/*" + "[" * 500 + "*/", FenceLimits()
    )


def test_refusal_names_the_function_and_what_is_allowed(shop: Any) -> None:
    with pytest.raises(Refused) as caught:
        fenced(shop, "SELECT reflect('java.lang.System', 'exit')")
    assert caught.value.message == "the function 'reflect' is not for ad-hoc queries"
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("allowed are")


def test_refusal_names_the_command(shop: Any) -> None:
    seen: list[str] = []
    for text in ("SET a = 1", "SELECT TRANSFORM(1) USING 'cat'", "BEGIN SELECT 1; END", "RESET"):
        with pytest.raises(HeadraceError) as caught:
            fenced(shop, text)
        seen.append(caught.value.message.removeprefix("an ad-hoc query may not use "))
    assert seen[:2] == ["SET", "TRANSFORM … USING"]


def test_syntax_error_says_where(shop: Any) -> None:
    with pytest.raises(BadQuery) as caught:
        fenced(shop, "SELECT *\nFORM clicks GROUP")
    assert caught.value.message == "syntax error at or near 'GROUP'" or "line 2" in str(
        caught.value
    )


def test_every_allowed_function_exists(spark: Any) -> None:
    known = {
        row.function.rpartition(".")[2] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()
    }
    assert fence_tables.FUNCTIONS - known <= set(["!=", "<>", "div", "case", "between", "not"])


def test_every_sized_function_is_allowed() -> None:
    assert set(fence_tables.SIZED) <= fence_tables.FUNCTIONS
