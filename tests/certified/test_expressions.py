"""Every function, operator and cast that is offered over served rows gives what Spark gives."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import pyarrow as pa
import pytest
from chance import PROVE, drawn

from certified.calls import NESTED, PLAIN, TYPES, calls, combinations, operations
from certified.edges import RELATION, duck, edges, same
from certified.edges import in_spark as relation_in_spark
from headrace.certified.select import CompiledQuery, compile_query
from headrace.core.errors import HeadraceError
from headrace.core.origin import Origin
from headrace.core.schema import Type
from headrace.define.dialect import parse_query

TOGETHER = 40  # expressions in one SELECT of Spark's
# Times as numbers, and NULL outside the years 1 to 9999.
IN_CALENDAR = "CASE WHEN year({0}) BETWEEN 1 AND 9999 THEN {1}({0}) END AS {0}"
AS_NUMBERS = {
    "date": IN_CALENDAR.format("{0}", "unix_date"),
    "timestamp": IN_CALENDAR.format("{0}", "unix_micros"),
    "timestamp_ntz": (
        "CASE WHEN year({0}) BETWEEN 1 AND 9999 THEN unix_micros(cast({0} AS timestamp)) END AS {0}"
    ),
}
Record = Callable[[str, object], None]


def compiled(expression: str) -> CompiledQuery | None:
    """None if it is refused."""
    query = parse_query(f"SELECT {expression} AS x, row FROM edges ORDER BY row", Origin("test", 1))
    try:
        return compile_query(query, lambda name: RELATION if name == "edges" else None)
    except HeadraceError:
        return None


def offered(expression: str) -> bool:
    return compiled(expression) is not None


def in_spark(spark: Any, expressions: list[str]) -> list[tuple[str, list[Any]]]:
    """The type and the values of each, times as numbers."""
    items = ", ".join(f"{text} AS x{n}" for n, text in enumerate(expressions))
    frame = spark.sql(f"SELECT {items}, row FROM edges ORDER BY row")
    types = [field.dataType.simpleString() for field in frame.schema][:-1]
    forms = [AS_NUMBERS.get(type, "{0}").format(f"x{n}") for n, type in enumerate(types)]
    table = frame.selectExpr(*forms).toArrow()
    columns = [table.column(n).to_pylist() for n in range(len(types))]
    return list(zip(types, columns, strict=True))


def type_text(type: str) -> str:
    """A type as both write it."""
    return type.upper() if type.upper() == "VOID" else Type.of(type).spark


def refused_by_spark(spark: Any, expression: str) -> bool:
    try:
        in_spark(spark, [expression])
    except Exception:
        return True
    return False


def in_duck(connection: Any, found: CompiledQuery) -> list[Any]:
    column = connection.sql(found.sql).to_arrow_table().column(0)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    elif pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    return list(column.to_pylist())


def compare(spark: Any, expressions: Iterable[str], rng: random.Random, rows: int) -> int:
    """Compare all of them; the number of values that were compared."""
    table = edges(rows, rng)
    relation_in_spark(spark, table)
    connection, known = duck(table), [(text, compiled(text)) for text in expressions]
    taken = [(text, found) for text, found in known if found]
    wrong, count = [], 0
    for start in range(0, len(taken), TOGETHER):
        part = taken[start : start + TOGETHER]
        try:
            expected = in_spark(spark, [text for text, _ in part])
        except Exception:  # Spark says only which one is the first
            part = [pair for pair in part if not refused_by_spark(spark, pair[0])]
            kept = {text for text, _ in part}
            tried = (text for text, _ in taken[start : start + TOGETHER])
            wrong += [f"{text} is refused by Spark" for text in tried if text not in kept]
            expected = in_spark(spark, [text for text, _ in part])
        for (text, found), (type, values) in zip(part, expected, strict=True):
            given = in_duck(connection, found)
            count += len(given)
            if type_text(found.columns[0].type) != type_text(type):
                wrong.append(f"{text} is {found.columns[0].type}, in Spark {type}")
            pairs = zip(given, values, table.to_pylist(), strict=True)
            wrong += [f"{text}: {a!r}, in Spark {b!r}: {r}" for a, b, r in pairs if not same(a, b)][
                :1
            ]
    spark.catalog.dropTempView("edges")
    assert wrong == [], "\n".join(wrong)
    return count


def test_functions_give_what_spark_gives(spark: Any, record_property: Record) -> None:
    rng = drawn("functions")
    found = calls(rng, 8 if PROVE else 1, offered)
    record_property("comparisons", compare(spark, found, rng, 200 if PROVE else 40))


def test_operators_and_casts_give_what_spark_gives(spark: Any, record_property: Record) -> None:
    rng = drawn("operators")
    found = operations() if PROVE else [*NESTED, *rng.sample(operations(), 160)]
    record_property("comparisons", compare(spark, found, rng, 100 if PROVE else 40))


@pytest.mark.prove
def test_combinations_give_what_spark_gives(spark: Any, record_property: Record) -> None:
    rng = drawn("combinations")
    found = list(islice(combinations(rng), 1_500))
    record_property("comparisons", compare(spark, found, rng, 100))


def test_what_the_page_names_is_offered() -> None:
    """So that nothing that it names is left out of the comparisons."""
    assert calls(drawn("offered"), 1, offered)
    assert [text for text in (*PLAIN, *NESTED) if not offered(text)] == []


@pytest.mark.parametrize("source", "stydibmwfkhoz")
def test_casts_are_offered_as_the_page_says(source: str) -> None:
    refused = {target for target in TYPES if not offered(f"CAST({source}1 AS {target})")}
    numbers = {"BOOLEAN", "TINYINT", "SMALLINT", "INT", "FLOAT", "DECIMAL(10,1)", "DECIMAL(38,6)"}
    times = {"DATE", "TIMESTAMP", "TIMESTAMP_NTZ"}
    of_floats = {"STRING"} if source in "df" else set()
    local = {*numbers, "BIGINT", "DOUBLE"}
    left_out = {"s": {"TIMESTAMP_NTZ"}, "t": numbers, "y": local, "z": local}
    assert refused == left_out.get(source, times | of_floats)
    assert offered(f"CAST({source}1 AS TIMESTAMP_LTZ)") == offered(f"CAST({source}1 AS TIMESTAMP)")


OBJECT = "STRUCT<a: INT, b: ARRAY<DECIMAL(18,2)>, c: STRUCT<D: STRING>>"


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("reflect('java.lang.System', 'getenv')", "'reflect' is not available over views"),
        ("CAST(d1 AS STRING)", "a cast of DOUBLE to STRING is not available over views"),
        (
            "repeat('x', 500000000)",
            "repeat, lpad and rpad over views require a whole number of at most 10,000",
        ),
        (
            "repeat(s1, i1)",
            "repeat with an argument that is not a literal is not available over views",
        ),
        (
            "lpad(repeat(s1, 9000), 9, 'x')",
            "repeat, lpad or rpad within another of them is not available over views",
        ),
        ("round(i1, 'a')", "the second argument of round must be an integer, got a"),
        ("percentile(i1, 'abc')", "the fraction of percentile must be from 0 to 1, got abc"),
        ("percentile(i1, 1.5)", "the fraction of percentile must be from 0 to 1, got 1.5"),
        ("-w1", "the negative of DECIMAL(38,18), which Spark rounds, is not available over views"),
        ("y1 - y2", "'-' of DATE and DATE is not available over views"),
        ("r1.x", "there is no field 'x'"),
        ("edges.r1.c.x", "there is no field 'x'"),
        ("i1.x", "a value of type INT has no field 'x'"),
        ("(r1).x", "there is no field 'x'"),
        ("(s1).x", "a value of type STRING has no field 'x'"),
        ("r1 < r2", f"'<' of {OBJECT} and {OBJECT} is not available over views"),
        ("p1 = p2", "'=' of MAP<STRING, INT> and MAP<STRING, INT> is not available over views"),
        ("max(l1)", "max of ARRAY<STRING> is not available over views"),
        ("greatest(l1, l2)", "greatest of ARRAY<STRING> is not available over views"),
        ("CAST(l1 AS STRING)", "a cast of ARRAY<STRING> to STRING is not available over views"),
        ("s1[0]", "a subscript of STRING is not available over views"),
        ("element_at(l1, 0)", "the index of element_at must not be 0: the first element is 1"),
        (
            "element_at(l1, i1)",
            "element_at with an index that is not a literal is not available over views",
        ),
        (
            "array_contains(l1, 1)",
            "array_contains of ARRAY<STRING> and INT is not available over views",
        ),
        ("explode(l1)", "'explode' in an expression is not available over views"),
        ("row_number() OVER (ORDER BY r1)", f"ordering by {OBJECT} is not available over views"),
        (
            "row_number() OVER (PARTITION BY p1 ORDER BY row)",
            "PARTITION BY MAP<STRING, INT> is not available over views",
        ),
        (
            "array_position(g1, m2)",
            "array_position of ARRAY<DOUBLE> and DECIMAL(18,2) is not available over views",
        ),
        ("s1 LIKE s2", "LIKE with a pattern that is not a literal is not available over views"),
        ("i1 BETWEEN SYMMETRIC 1 AND 2", "'between' with 'symmetric' is not available over views"),
        (
            "regexp_extract(s1, '(a)+')",
            "')+' in the pattern '(a)+' is not available over views",
        ),
        (
            "regexp_replace(s1, 'a*', 'x')",
            "the pattern 'a*', which matches an empty text, is not available over views",
        ),
        (
            "regexp_replace(s1, 'a', '$1')",
            "regexp_replace with anything but a plain text as the replacement is not available "
            "over views",
        ),
        ("split(s1, 'a$')", "'a$' in the pattern 'a$' is not available over views"),
        ("split(s1, 1)", "split with a pattern of INT is not available over views"),
        (
            "regexp_extract(s1, '(a)', 2)",
            "the group of regexp_extract must be from 0 to 1, got 2",
        ),
        (
            "t1 + INTERVAL '1 day junk'",
            "the interval INTERVAL '1 day junk' is not available over views",
        ),
        (r"s1 LIKE 'a\\\\\\b'", r"the pattern 'a\\\b' has a lone escape character"),
        ("CASE WHEN i1 THEN 1 END", "INT as a condition is not available over views"),
    ],
)
def test_what_is_not_certified_is_refused_with_a_sentence(expression: str, sentence: str) -> None:
    query = parse_query(f"SELECT {expression} AS x FROM edges", Origin("test", 1))
    with pytest.raises(HeadraceError) as refused:
        compile_query(query, lambda name: RELATION)
    assert refused.value.message == sentence
