"""Spark tells the types of a query's columns, and its errors come at the user's file and line."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.core.errors import BadDefinition, HeadraceError, UnknownColumn, UnknownName
from headrace.core.origin import Origin
from headrace.spark.analyse import SparkAnalyser

AT = Origin("shop.sql", 7)
DDL = (
    "`user` STRING, `ms` INT, `bytes` BIGINT, `price` DOUBLE, `ok` BOOLEAN, `tags` ARRAY<STRING>, "
    "`day` DATE, `ts` TIMESTAMP"
)


@pytest.fixture(scope="module")
def analyser(spark: Any) -> SparkAnalyser:
    made = SparkAnalyser(spark)
    made.relation("clicks", DDL)
    return made


def test_declared_types_come_back(analyser: SparkAnalyser) -> None:
    assert analyser.analyse("SELECT * FROM clicks", AT) == [
        ("user", "string"),
        ("ms", "int"),
        ("bytes", "bigint"),
        ("price", "double"),
        ("ok", "boolean"),
        ("tags", "array<string>"),
        ("day", "date"),
        ("ts", "timestamp"),
    ]


@pytest.mark.parametrize(
    ("expression", "type"),
    [
        ("count(*)", "bigint"),
        ("sum(ms)", "bigint"),
        ("avg(bytes)", "double"),
        ("max(ts)", "timestamp"),
        ("max_by(user, ms)", "string"),
        ("sum(ms) / count(*)", "double"),
        ("count_if(ok) > 1", "boolean"),
        ("NULL", "void"),
        ("1.5", "decimal(2,1)"),
    ],
)
def test_type_of_an_expression_is_sparks(
    analyser: SparkAnalyser, expression: str, type: str
) -> None:
    assert analyser.analyse(f"SELECT {expression} AS x FROM clicks", AT) == [("x", type)]


def test_named_query_can_be_read_by_the_next(analyser: SparkAnalyser) -> None:
    analyser.analyse("SELECT user, explode(tags) AS tag FROM clicks", AT, "tagged")
    assert analyser.analyse("SELECT tag FROM tagged", AT) == [("tag", "string")]


def test_what_is_made_known_is_not_seen_outside(spark: Any, analyser: SparkAnalyser) -> None:
    assert not spark.catalog.tableExists("clicks")


@pytest.mark.parametrize(
    ("sql", "kind", "sentence"),
    [
        (
            "SELECT\n  usr\nFROM clicks",
            UnknownColumn,
            "UnknownColumn: there is no column 'usr'\n"
            "  detail: similar columns: ms, ts, user, ok, day.\n"
            "  hint: did you mean 'user'?\n"
            "  at shop.sql:8:3",
        ),
        (
            "SELECT ms\nFROM clicks\nWHERE lenght(user) > 1",
            UnknownName,
            "UnknownName: there is no function 'lenght'\n"
            "  hint: Spark's functions are available, and those defined in functions.py.\n"
            "  at shop.sql:9:7",
        ),
        (
            "SELECT ms FROM clicks\nWHERE user AND ok",
            BadDefinition,
            'BadDefinition: cannot resolve "(user AND ok)" due to data type mismatch: the left and '
            "right operands of the binary operator have incompatible types "
            '("STRING" and "BOOLEAN")\n'
            "  detail: DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES\n"
            "  at shop.sql:8:7",
        ),
        (
            "SELECT ms FROM clicks\nWHERE ok)",
            BadDefinition,
            "BadDefinition: syntax error at or near ')': extra input ')'\n"
            "  detail: PARSE_SYNTAX_ERROR\n"
            "  at shop.sql:8:8",
        ),
    ],
)
def test_error_of_spark_is_one_of_ours_at_the_line_of_the_file(
    analyser: SparkAnalyser, sql: str, kind: type[HeadraceError], sentence: str
) -> None:
    with pytest.raises(kind) as caught:
        analyser.analyse(sql, AT)
    assert str(caught.value) == sentence


def test_error_shows_neither_javas_stack_nor_sparks_plan(analyser: SparkAnalyser) -> None:
    with pytest.raises(BadDefinition) as caught:
        analyser.analyse("SELECT user, count(*) FROM clicks", AT)
    text = str(caught.value)
    assert [word for word in ("SQLSTATE", "Aggregate [", "org.apache", "==") if word in text] == []
    assert text.splitlines()[1:] == ["  detail: MISSING_GROUP_BY", "  at shop.sql:7"]


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("ms + 1", "1 + MS", True),
        ("upper(user)", "ucase(clicks.user)", True),
        ("ms > 1", "1 < ms", True),
        ("date_format(ts, 'MM')", "date_format(ts, 'mm')", False),
        ("user || 'a'", "user || 'A'", False),
        ("ms - 1", "1 - ms", False),
        ("x -> x + ms", "ms", False),
        ("nothing + 1", "1 + nothing", False),
    ],
)
def test_expressions_are_compared_by_their_canonical_form(
    analyser: SparkAnalyser, one: str, other: str, equal: bool
) -> None:
    assert analyser.equal(f"SELECT {one} AS one, {other} AS other FROM clicks") is equal
