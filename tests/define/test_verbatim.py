"""What is unchanged is written in its own words, and what is changed around them."""

from __future__ import annotations

import pytest
from sqlglot import exp

from headrace.core.origin import Origin
from headrace.define.dialect import parse_query, sql_of

AT = Origin("shop.sql", 5)


def read(text: str) -> exp.Query:
    return parse_query(f"SELECT {text} FROM c", AT)


def column(query: exp.Query, name: str) -> exp.Column:
    return next(node for node in query.find_all(exp.Column) if node.name == name)


@pytest.mark.parametrize(
    "text",
    [
        "date '2026-01-01' + interval 1 day", "x::int", "cast(x AS decimal(10, 2))", "1.5BD + 1L",
        "r'\\d+'", "X'1F'", "a <=> b", "a << 2 >> 1", "- -1", "a - -b", "payload:Date.b[0]",
        "struct(date AS Date, end)", "window.end", "transform(xs, x -> x + 1)", "a[0][1]",
        "filter(xs, x -> x > 1)", "sum(x) FILTER (WHERE a IN (1, 2))", "count(DISTINCT a, b)",
        "CASE WHEN a IS NOT NULL THEN 'it''s' ELSE \"b\" end", "a NOT LIKE 'b/%' escape '/'",
        "to_char(ts, 'yyyy')", "extract(year FROM ts)", "`a b`.`c``d`", "(a + b) * (c)",
        "if(a, b, c)", "trim(BOTH 'x' FROM y)", "NOT (a AND b)", "a % 2 = 0 OR b DIV 2 = 1",
    ],
)  # fmt: skip
def test_an_unchanged_expression_is_written_as_it_was(text: str) -> None:
    query = read(text)
    assert sql_of(query.selects[0].unalias()) == text
    assert sql_of(query) == f"SELECT {text} FROM c"


@pytest.mark.parametrize(
    ("text", "uniform"),
    [
        ("a+b*- 1", "a + b * -1"),
        ("COUNT( * )filter(where a  and not b)", "count(*) FILTER (WHERE a AND NOT b)"),
        ("a /* why */ in(1,2)", "a IN (1, 2)"),
        ("Payload:Date  . b", "Payload:Date.b"),
        ("xs [0] . y", "xs[0].y"),
    ],
)
def test_formatting_becomes_uniform(text: str, uniform: str) -> None:
    assert sql_of(read(text).selects[0]) == uniform


def test_a_changed_expression_is_written_around_what_is_unchanged() -> None:
    query = read("f(ts::date, b) + to_char(a, 'MM')")
    column(query, "b").replace(exp.column("other", table="s"))
    assert sql_of(query.selects[0]) == "f(ts::date, s.other) + to_char(a, 'MM')"


def test_a_copy_that_was_changed_leaves_the_original() -> None:
    query = read("x::int + y")
    copy = query.copy()
    column(copy, "x").this.set("this", "z")
    assert sql_of(copy.selects[0]) == "CAST(z AS INT) + y"
    assert sql_of(query.selects[0]) == "x::int + y"


def test_a_cast_from_a_variant_is_tried_wherever_it_stands() -> None:
    query = read("f(payload:n::int + 1) > x::int")
    assert sql_of(query.selects[0]) == "f(TRY_CAST(payload:`n` AS INT) + 1) > x::int"
