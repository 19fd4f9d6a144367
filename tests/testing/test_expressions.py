"""The value of every kind of expression, as a table.

The values in SPARK were measured on Spark 4.3 with ANSI off. Those in SHARED hold in DuckDB too,
which is asked each time: a second opinion that costs milliseconds.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import duckdb
import pytest

from headrace.core.errors import Unsupported
from headrace.testing.reference import Reference, Timestamp


def value_of(expression: str, **columns: Any) -> Any:
    reference = Reference({"s": list(columns)}, {}, {"v": f"SELECT {expression} AS x FROM s"})
    return reference.answer("v", {"s": [columns]})[0]["x"]


SHARED = [
    ("1 + 2 * 3", 7),
    ("(1 + 2) * 3", 9),
    ("7 / 2", 3.5),
    ("-7 % 3", -1),
    ("7 % -3", 1),
    ("1 + NULL", None),
    ("NULL AND false", False),
    ("NULL AND true", None),
    ("NULL OR true", True),
    ("NULL OR false", None),
    ("NOT CAST(NULL AS BOOLEAN)", None),
    ("NULL = NULL", None),
    ("NULL IS NULL", True),
    ("1 IS NOT NULL", True),
    ("true IS TRUE", True),
    ("1 IS DISTINCT FROM NULL", True),
    ("1 IN (1, NULL)", True),
    ("1 IN (2, NULL)", None),
    ("1 NOT IN (2, 3)", True),
    ("1 NOT IN (1, NULL)", False),
    ("2 BETWEEN 2 AND 3", True),
    ("1 BETWEEN NULL AND 0", False),
    ("2 NOT BETWEEN 3 AND 4", True),
    ("'abc' LIKE 'a%'", True),
    ("'abc' LIKE 'a_'", False),
    ("'a.c' LIKE 'a.c'", True),
    ("'abc' LIKE 'a.c'", False),
    ("'abc' NOT LIKE 'b%'", True),
    ("'a' < 'B'", False),
    ("'a' <> 'b'", True),
    ("2 >= 2", True),
    ("CASE WHEN 1 > 2 THEN 'a' WHEN 2 > 1 THEN 'b' ELSE 'c' END", "b"),
    ("CASE 3 WHEN 1 THEN 'a' WHEN 3 THEN 'c' END", "c"),
    ("CASE 3 WHEN 1 THEN 'a' END", None),
    ("CASE NULL WHEN NULL THEN 1 ELSE 2 END", 2),
    ("if(1 > 2, 'a', 'b')", "b"),
    ("coalesce(NULL, NULL, 3)", 3),
    ("coalesce(NULL, NULL)", None),
    ("nullif(1, 1)", None),
    ("nullif(1, 2)", 1),
    ("nullif(1, NULL)", 1),
    ("ifnull(NULL, 'b')", "b"),
    ("lower('ÀB')", "àb"),
    ("length('é€😀')", 3),
    ("trim('  a ')", "a"),
    ("trim(BOTH 'x' FROM 'xax')", "a"),
    ("ltrim('  a ')", "a "),
    ("rtrim('  a ')", "  a"),
    ("substring('abc', 2)", "bc"),
    ("substring('abc', 1, 2)", "ab"),
    ("substring('abc', -2)", "bc"),
    ("substring('abc', 2, 0)", ""),
    ("left('abc', 2)", "ab"),
    ("right('abc', 2)", "bc"),
    ("'a' || 'b' || 'c'", "abc"),
    ("'a' || NULL", None),
    ("'it''s'", "it's"),
    ("abs(-3)", 3),
    ("abs(-3.5)", 3.5),
    ("round(2.5)", 3.0),
    ("round(-2.5)", -3.0),
    ("round(3.14159, 2)", 3.14),
    ("round(15, -1)", 20),
    ("floor(-1.5)", -2),
    ("ceil(-1.5)", -1),
    ("floor(3)", 3),
    ("greatest(1, NULL, 3)", 3),
    ("least(2, NULL, 1)", 1),
    ("greatest('a', 'b')", "b"),
    ("CAST(3 AS STRING)", "3"),
    ("CAST(true AS STRING)", "true"),
    ("CAST('12' AS INT)", 12),
    ("CAST('-12' AS BIGINT)", -12),
    ("CAST('1.5' AS DOUBLE)", 1.5),
    ("CAST('1e3' AS DOUBLE)", 1000.0),
    ("CAST(true AS INT)", 1),
    ("CAST('true' AS BOOLEAN)", True),
    ("CAST(0 AS BOOLEAN)", False),
    ("year(TIMESTAMP '2026-05-06 07:08:09')", 2026),
    ("month(TIMESTAMP '2026-05-06 07:08:09')", 5),
    ("day(TIMESTAMP '2026-05-06 07:08:09')", 6),
    ("hour(TIMESTAMP '1969-12-31 23:00:00')", 23),
    ("minute(TIMESTAMP '2026-05-06 07:08:09')", 8),
    ("second(TIMESTAMP '2026-05-06 07:08:09.9')", 9),
    ("date_trunc('hour', TIMESTAMP '2026-05-06 07:08:09')", "2026-05-06T07:00:00Z"),
    ("date_trunc('day', TIMESTAMP '1969-12-31 07:08:09')", "1969-12-31T00:00:00Z"),
    ("date_trunc('quarter', TIMESTAMP '2026-05-06 07:08:09')", "2026-04-01T00:00:00Z"),
    ("date_trunc('week', TIMESTAMP '2026-01-01 00:00:00')", "2025-12-29T00:00:00Z"),
    ("TIMESTAMP '2026-01-01 00:00:00' + INTERVAL 90 MINUTES", "2026-01-01T01:30:00Z"),
    ("TIMESTAMP '2026-01-01 00:00:00' - INTERVAL '1' DAY", "2025-12-31T00:00:00Z"),
    ("TIMESTAMP '2026-01-01 00:00:00' > TIMESTAMP '2025-12-31 23:59:59'", True),
]
SPARK = [
    ("7 div 2", 3),
    ("7 div -2", -3),
    ("1 div 0", None),
    ("1 / 0", None),
    ("1.5 / 0.0", None),
    ("1 % 0", None),
    ("5.5 % 2", 1.5),
    ("9223372036854775807 + CAST(1 AS BIGINT)", -(2**63)),
    ("NULL <=> NULL", True),
    ("1 <=> NULL", False),
    ("1 <=> 1", True),
    ("'10' = 10", True),
    ("'x' = 1", None),
    ("'1.5' = 1", True),
    ("1 = true", True),
    ("'3' + 4", 7.0),
    ("'x' * 2", None),
    ("-'3'", -3.0),
    ("abs('-2')", 2.0),
    ("'a%b' LIKE 'a\\\\%b'", True),
    ("'axb' LIKE 'a\\\\%b'", False),
    ("upper('straße')", "STRASSE"),
    ("trim('\\ta')", "\ta"),
    ("nvl(NULL, 2)", 2),
    ("if(NULL, 1, 2)", 2),
    ("concat('a', NULL)", None),
    ("concat('a', 1, true)", "a1true"),
    ("'a' || 1", "a1"),
    ("substr('abc', -5, 3)", "a"),
    ("substring('abc', 0, 2)", "ab"),
    ("substring('abc', 1, -1)", ""),
    ("right('abc', 0)", ""),
    ("split('a,b,,', ',')", ["a", "b", "", ""]),
    ("split('', 'x')", [""]),
    ("split('abc', '')", ["a", "b", "c"]),
    ("split('a1b2', '[0-9]')", ["a", "b", ""]),
    ("split('a,b,c', ',', 2)", ["a", "b,c"]),
    ("array('a', NULL)", ["a", None]),
    ("array(1, 2)[1]", 2),
    ("array(1, 2)[5]", None),
    ("size(NULL)", -1),
    ("size(array(1, 2))", 2),
    ("array_contains(array(1, NULL), 2)", None),
    ("array_contains(array(1, NULL), 1)", True),
    ("least(NULL, NULL)", None),
    ("round(1.005, 2)", 1.01),
    ("round(25, -1)", 30),
    ("CAST('.' AS INT)", 0),
    ("CAST('5.' AS INT)", 5),
    ("CAST('.5' AS INT)", 0),
    ("CAST('1e3' AS INT)", None),
    ("CAST(' 7 ' AS BIGINT)", 7),
    ("CAST('-1.9' AS INT)", -1),
    ("CAST('' AS INT)", None),
    ("CAST('2147483648' AS INT)", None),
    ("CAST('one' AS DOUBLE)", None),
    ("CAST('1d' AS DOUBLE)", 1.0),
    ("CAST('-inf' AS DOUBLE)", -math.inf),
    ("CAST('NaN' AS DOUBLE) = CAST('NaN' AS DOUBLE)", True),
    ("CAST('NaN' AS DOUBLE) > 1e308", True),
    ("CAST(3.99 AS INT)", 3),
    ("CAST(-3.99 AS BIGINT)", -3),
    ("CAST(1e30 AS INT)", 2**31 - 1),
    ("CAST(3000000000 AS INT)", -1294967296),
    ("CAST('yes' AS BOOLEAN)", True),
    ("CAST('on' AS BOOLEAN)", None),
    ("CAST(0.5 AS BOOLEAN)", True),
    ("CAST(1.5D AS STRING)", "1.5"),
    ("CAST(1e7D AS STRING)", "1.0E7"),
    ("CAST(0.0001D AS STRING)", "1.0E-4"),
    ("CAST(123456789.125D AS STRING)", "1.23456789125E8"),
    ("CAST(100D AS STRING)", "100.0"),
    ("CAST(TIMESTAMP '2026-01-01 00:00:00.5' AS STRING)", "2026-01-01 00:00:00.5"),
    ("CAST('2026-01-01T10:00:00Z' AS TIMESTAMP)", "2026-01-01T10:00:00Z"),
    ("CAST('nope' AS TIMESTAMP)", None),
    ("CAST(TIMESTAMP '1969-12-31 23:59:59.5' AS BIGINT)", -1),
    ("TIMESTAMP '2026-01-01' > '2025-12-31'", True),
    ("TIMESTAMP '2026-01-01' - INTERVAL '1 day 2 hours'", "2025-12-30T22:00:00Z"),
    ("hour('x')", None),
    ("date_trunc('nope', TIMESTAMP '2026-01-01')", None),
]


@pytest.mark.parametrize(("expression", "expected"), SHARED + SPARK, ids=lambda x: str(x))
def test_an_expression_has_the_value_that_spark_gives(expression: str, expected: Any) -> None:
    found = value_of(expression)
    assert (type(found), found) == (type(expected), expected) or _equal_numbers(found, expected)


def _equal_numbers(found: Any, expected: Any) -> bool:
    """Only a round or floor of a literal: what is a decimal in Spark is a double here."""
    return isinstance(found, float) and isinstance(expected, int) and found == expected


@pytest.mark.parametrize(("expression", "expected"), SHARED, ids=lambda x: str(x))
def test_duckdb_agrees_where_it_means_the_same(expression: str, expected: Any) -> None:
    found = duckdb.execute(f"SELECT {expression}").fetchone()[0]
    if isinstance(found, datetime):
        found = found.isoformat() + "Z"
    assert found == expected or math.isclose(found, expected)


@pytest.mark.parametrize(
    "expression",
    ["regexp_replace(a, 'x', 'y')", "ts - ts2", "INTERVAL 1 MONTH", "element_at(a, 1)"],
)
def test_what_the_reference_does_not_know_it_says(expression: str) -> None:
    with pytest.raises(Unsupported, match="does not support"):
        value_of(expression, a="x", ts=Timestamp(1), ts2=Timestamp(0))


def test_a_field_that_an_event_does_not_have_is_null() -> None:
    reference = Reference({"s": ["a", "b"]}, {}, {"v": "SELECT a, b FROM s"})
    assert reference.answer("v", {"s": [{"a": 1}]}) == [{"a": 1, "b": None}]
