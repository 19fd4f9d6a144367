"""The forms that sqlglot misread, and the place that a mistake is told at."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlglot import exp

from headrace.core.errors import BadDefinition
from headrace.core.origin import Origin
from headrace.define.dialect import parse_query, parse_read, parse_translatable, sql_of

AT = Origin("shop.sql", 5)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("SELECT count(*) FROM c GROUP BY window(ts, '1 hour')", "window(ts, '1 hour')"),
        ("SELECT count(*) FROM c GROUP BY WINDOW(ts, '5 minutes')", "window(ts, '5 minutes')"),
    ],
)
def test_window_is_a_function_to_group_by(text: str, read: str) -> None:
    group = parse_query(text, AT).args["group"].expressions
    assert [(type(key), sql_of(key)) for key in group] == [(exp.Anonymous, read)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELECT window(ts, '1 hour') FROM c", exp.Anonymous),
        ("SELECT window FROM c", exp.Column),
        ("SELECT window.start FROM c", exp.Column),
        ("SELECT window(ts, '1 hour').end FROM c", exp.Dot),
        ("SELECT sum(a) OVER (PARTITION BY b) FROM c", exp.Window),
    ],
)
def test_window_is_a_plain_name_wherever_it_stands(text: str, kind: type[exp.Expr]) -> None:
    query = parse_query(text, AT)
    assert type(query.selects[0]) is kind
    assert sql_of(query) == text


@pytest.mark.parametrize(
    "text",
    [
        "select  COUNT( * ) as n ,Max_By(a , b) m\nFROM c -- why\nwhere /* so */ a='B' and d>1",
        "SELECT count(*) AS n, max_by(a, b) AS m FROM c WHERE a = 'B' AND d > 1",
    ],
)
def test_formatting_and_comments_leave_the_text(text: str) -> None:
    one_line = "SELECT count(*) AS n, max_by(a, b) AS m FROM c WHERE a = 'B' AND d > 1"
    assert sql_of(parse_query(text, AT)) == one_line


def test_one_line_is_read_as_itself() -> None:
    text = (
        "SELECT a DIV 2 AS h, x FROM c LATERAL VIEW explode(xs) t AS x "
        "LEFT JOIN d ON c.k = d.k WHERE NOT a RLIKE 'x' GROUP BY h, x"
    )
    again = sql_of(parse_query(text, AT))
    assert sql_of(parse_query(again, AT)) == again


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("'- 1 day'", "'- 1 day'"), ("'1 day junk'", "'1 day junk'"), ("'-1 day'", "'-1' DAY"),
        ("'1 day 2 hours'", "'1 day 2 hours'"), ("'1' DAY", "'1' DAY"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("parse", [parse_query, parse_read, parse_translatable])
def test_no_part_of_an_interval_is_dropped(
    parse: Callable[[str, Origin], exp.Query], text: str, kept: str
) -> None:
    query = parse(f"SELECT ts + INTERVAL {text} FROM c", AT)
    assert query.selects[0].expression.sql() == f"INTERVAL {kept}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "SELECT count(* FROM c",
            "BadDefinition: expecting ) near 'FROM'\n  at shop.sql:5",
        ),
        (
            "SELECT\n  a b c\nFROM d",
            "BadDefinition: unexpected 'c'\n  at shop.sql:6:7",
        ),
        (
            "SELECT a FROM c WHERE",
            "BadDefinition: something is missing at 'WHERE'\n  at shop.sql:5",
        ),
        (
            "INSERT INTO x VALUES (1)",
            "BadDefinition: expected a SELECT, got 'INSERT'\n"
            "  hint: write … AS SELECT … FROM …\n"
            "  at shop.sql:5",
        ),
        (
            "SELEC a, b FROM c",
            "BadDefinition: expected a SELECT, got 'SELEC'\n"
            "  hint: did you mean SELECT?\n"
            "  at shop.sql:5",
        ),
        (
            "SELECT a FRM c",
            "BadDefinition: unexpected 'c'\n"
            "  hint: did you mean FROM instead of 'FRM'?\n"
            "  at shop.sql:5",
        ),
        (
            "SELECT a FROM c\nCREATE VIEW d AS SELECT 1 FROM e",
            "BadDefinition: unexpected 'CREATE'\n"
            "  hint: is a ';' missing before CREATE?\n"
            "  at shop.sql:6:6",
        ),
        (
            "SELECT a FROM c; SELECT b FROM c",
            "BadDefinition: expected a single SELECT\n  at shop.sql:5",
        ),
    ],
)
def test_mistake_is_told_at_the_line_of_the_file(text: str, sentence: str) -> None:
    with pytest.raises(BadDefinition) as caught:
        parse_query(text, AT)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "SELECT 'it''s' AS a,\n 'abc",
            "the string that starts here is never closed\n  at shop.sql:6",
        ),
        ("SELECT\n\n`a FROM b", "the string that starts here is never closed\n  at shop.sql:7"),
        ("SELECT a\n/* b", "the comment that starts here is never closed\n  at shop.sql:6"),
        (
            "SELECT 'x' AS a,\n 'y AS b\nFROM c\nWHERE d = 'z'",
            "the string that starts here continues on the next line, and a later one is never "
            "closed\n"
            "  hint: is a quote missing at the end of this string?\n"
            "  at shop.sql:6",
        ),
    ],
)
def test_what_is_never_closed_is_told_where_it_opens(text: str, sentence: str) -> None:
    with pytest.raises(BadDefinition) as caught:
        parse_query(text, AT)
    assert str(caught.value) == f"BadDefinition: {sentence}"
