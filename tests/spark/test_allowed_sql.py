"""SQL that computes is allowed; SQL that acts, reads elsewhere or is unbounded is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.core.errors import BadQuery, HeadraceError, LimitReached, Refused
from headrace.spark import allow_lists
from headrace.spark.allowed_sql import check_sql
from headrace.spark.sql_limits import SqlLimits, check_text

GOOD = Path(__file__).with_name("good_queries.sql").read_text("utf-8").splitlines()

HOSTILE = Path(__file__).with_name("hostile_queries.sql").read_text("utf-8").splitlines()


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


def check(spark: Any, text: str) -> None:
    check_sql(spark, text, relations=["clicks", "Sections"], functions=["shout"])


@pytest.mark.parametrize("text", GOOD)
def test_good_query_is_let_through_and_runs(shop: Any, text: str) -> None:
    check(shop, text)
    shop.sql(text).collect()


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_statement_is_refused_with_a_sentence(shop: Any, text: str) -> None:
    with pytest.raises((Refused, BadQuery)) as caught:
        check(shop, text)
    assert len(caught.value.message.split()) >= 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT " + "(" * 3000 + "1" + ")" * 3000, "the query is nested more than 64 levels deep"),
        ("SELECT " + "CASE WHEN 1=1 THEN " * 70, "the query is nested more than 64 levels deep"),
        ("SELECT CAST(1 AS " + "ARRAY<" * 70, "the query is nested more than 64 levels deep"),
        ("SELECT " + "1+" * 9000 + "1", "the query is too complex to parse"),
        ("SELECT " + "NOT " * 4000 + "true", "the query is too complex to parse"),
        (
            "SELECT '" + "x" * 10_001 + "'",
            "a string literal in the query is longer than 10,000 characters",
        ),
        ("SELECT 1 IN (" + "1," * 1000 + "1)", "a list in the query has more than 1,000 values"),
        ("SELECT " + "a," * 4999 + "a", "the query has more than 5,000 syntax nodes"),
        ("x" * 20_001, "the query has 20,001 characters, and the limit is 20,000"),
    ],
    ids=["parentheses", "case", "types", "sum", "not", "text", "list", "parts", "length"],
)
def test_oversized_query_reaches_a_limit(shop: Any, text: str, message: str) -> None:
    with pytest.raises(LimitReached) as caught:
        check(shop, text)
    assert caught.value.message == message


@pytest.mark.parametrize(
    "text", ["SELECT 'a", "SELECT `a", "SELECT /* a", 'SELECT "a', r"SELECT 'a\'"]
)
def test_open_quote_or_comment_cannot_be_read(text: str) -> None:
    with pytest.raises(BadQuery):
        check_text(f"SELECT {text}", SqlLimits())


def test_parentheses_in_texts_and_comments_are_no_nesting() -> None:
    check_text(
        "SELECT '" + "(" * 500 + "' -- " + "(" * 500 + "\n/*" + "[" * 500 + "*/", SqlLimits()
    )


def test_refusal_names_the_function_and_what_is_allowed(shop: Any) -> None:
    with pytest.raises(Refused) as caught:
        check(shop, "SELECT reflect('java.lang.System', 'exit')")
    assert caught.value.message == "an ad-hoc query may not use the function 'reflect'"
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("use a function of Spark")


def test_refusal_names_the_command(shop: Any) -> None:
    seen: list[str] = []
    for text in ("SET a = 1", "SELECT TRANSFORM(1) USING 'cat'", "BEGIN SELECT 1; END", "RESET"):
        with pytest.raises(HeadraceError) as caught:
            check(shop, text)
        seen.append(caught.value.message.removeprefix("an ad-hoc query may not use "))
    assert seen[:2] == ["SET", "TRANSFORM … USING"]


def test_syntax_error_says_where(shop: Any) -> None:
    with pytest.raises(BadQuery) as caught:
        check(shop, "SELECT user\nFROM clicks GRUOP BY user")
    assert caught.value.message == "syntax error at or near 'BY'"
    assert caught.value.detail == "PARSE_SYNTAX_ERROR, line 2, column 19"


def test_every_allowed_function_exists(spark: Any) -> None:
    rows = spark.sql("SHOW SYSTEM FUNCTIONS").collect()
    known = {row.function.removeprefix("system.builtin.") for row in rows}
    assert sorted(allow_lists.FUNCTIONS - known) == []


def test_every_sized_function_is_allowed() -> None:
    assert set(allow_lists.SIZED) <= allow_lists.FUNCTIONS
