"""One column as a definition writes it: its type, its clauses in any order, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations

import pytest

from headrace.core.errors import BadDefinition, HeadraceError, Unsupported
from headrace.core.schema import Column, ComputedExpression, Schema, Type
from headrace.define.definitions import StreamDefinition
from headrace.define.statements import read_statements
from headrace.log.block import Block
from headrace.log.decode import Decoder


def column(text: str, options: str = "") -> Column:
    (stream,) = read_statements(f"CREATE STREAM s ({text}, last INT){options};", "a.sql")
    assert isinstance(stream, StreamDefinition)
    assert stream.schema.columns[1] == Column("last", Type("INT"))
    return stream.schema.columns[0]


CLAUSES = ["NOT NULL", "FORMAT 'epoch_ms'", "FROM '$.a[\"b c\"]'", "COMMENT 'NOT NULL, FROM here'"]
DEFAULTS = {
    "STRING": (["''", "'it''s'", "'NULL'"], ["5", "TRUE"]),
    "BOOLEAN": (["TRUE", "false"], ["'true'", "1"]),
    "TINYINT": (["0", "-128", "127"], ["128", "1.5", "'1'"]),
    "SMALLINT": (["32767"], ["-32769"]),
    "INT": (["-2147483648"], ["2147483648"]),
    "BIGINT": (["9223372036854775807"], ["9223372036854775808"]),
    "FLOAT": (["0.5", "7"], ["'1'", "340282356779733661637539395458142568448"]),
    "DOUBLE": (["1.5", "-3"], ["'1.5'", "TRUE"]),
    "DECIMAL(5,2)": (["1.50", "-999.99", "'1.5'", "0"], ["1000", "1.555", "'x'", "TRUE"]),
    "TIMESTAMP": (["'2026-01-01T00:00:00Z'", "'2026-01-01 00:00'"], ["'soon'", "'2026-01-01'"]),
    "TIMESTAMP_NTZ": (["'2026-01-01T00:00:00'"], ["'2026-01-01T00:00:00Z'", "1"]),
    "DATE": (["'2024-02-29'"], ["'2026-02-29'", "'20260101'", "1"]),
    "BINARY": (["'aGk='", "''"], ["'a'", "1"]),
    "VARIANT": (["'x'", "1.50", "TRUE"], []),
    "TIMESTAMP FORMAT 'epoch_ms'": (["0", "'1500'", "1.5"], ["'x'", "TRUE", "253402300800000"]),
    "TIMESTAMP FORMAT 'yyyy-MM-dd'": (["'2026-01-01'"], ["'2026-02-30'", "0"]),
    "ARRAY<INT>": ([], ["1", "'[]'"]),
}  # fmt: skip


@pytest.mark.parametrize("order", list(permutations(CLAUSES)), ids=str)
def test_clauses_come_in_any_order(order: tuple[str, ...]) -> None:
    found = column(f"ts TIMESTAMP {' '.join(order)}")
    path = '$.a["b c"]'
    assert found == Column("ts", Type("TIMESTAMP"), nullable=False, format="epoch_ms", path=path)


@pytest.mark.parametrize(
    ("text", "spark"),
    [
        ("DECIMAL(10, 2)", "DECIMAL(10,2)"),
        ("array<map<string,int>>", "ARRAY<MAP<STRING, INT>>"),
        ("STRUCT<a: INT, `odd name` ARRAY<STRUCT<x: DATE>>>",
         "STRUCT<a: INT, `odd name`: ARRAY<STRUCT<x: DATE>>>"),
        ("STRUCT<\n  a: INT, -- the first\n  format: STRING, `not`: INT\n>",
         "STRUCT<a: INT, format: STRING, not: INT>"),
        ("STRUCT<a: ARRAY<ARRAY<ARRAY<INT>>>>", "STRUCT<a: ARRAY<ARRAY<ARRAY<INT>>>>"),
    ],
)  # fmt: skip
def test_a_type_is_read_to_its_end(text: str, spark: str) -> None:
    found = column(f"x {text} NOT NULL")
    assert (found.type.spark, found.nullable) == (spark, False)


@pytest.mark.parametrize(
    ("type", "literal"), [(type, good) for type, (found, _) in DEFAULTS.items() for good in found]
)
def test_a_default_of_the_columns_type_is_kept_and_the_decoder_takes_it(
    type: str, literal: str
) -> None:
    found = column(f"x {type} NOT NULL DEFAULT {literal}")
    block = Block.of(0, 0, [b"{}", b'{"x": null}'], bytes(2))
    table = Decoder(Schema((found,))).decode([block], 0, None, raw=False).table
    assert table["_reason"].to_pylist() == [None, None]
    first, second = table["x"].to_pylist()
    assert first is not None
    assert first == second


@pytest.mark.parametrize(
    ("type", "literal"), [(type, bad) for type, (_, found) in DEFAULTS.items() for bad in found]
)
def test_a_default_of_another_type_is_refused_here_and_by_the_decoder(
    type: str, literal: str
) -> None:
    with pytest.raises(BadDefinition, match=r"column 'x': the default .* is not ") as caught:
        column(f"x {type} DEFAULT {literal}")
    assert str(caught.value.origin) == "a.sql:1"
    text = json.dumps(literal[1:-1]) if literal.startswith("'") else literal.lower()
    if not column(f"x {type}").type.nested:
        with pytest.raises(BadDefinition, match="the default of column 'x' "):
            Decoder(Schema((replace(column(f"x {type}"), default=text),)))


def test_no_default_is_null() -> None:
    assert column("x INT DEFAULT NULL") == Column("x", Type("INT"))


def test_a_path_is_kept_in_one_spelling() -> None:
    assert column("x INT FROM '$[''a''].b'").path == column("""x INT FROM '$."a"["b"]'""").path


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x BLOB", "column 'x': the type BLOB is not supported"),
        ("x ARRAY<VARIANT>", "column 'x': the type ARRAY<VARIANT> must not contain VARIANT"),
        (
            "x MAP<INT, INT>",
            "column 'x': the type MAP<INT, INT> has map keys of type INT, not STRING",
        ),
        ("x INT FORMAT 'epoch_s'", "column 'x': FORMAT requires a TIMESTAMP, got INT"),
        ("x TIMESTAMP FORMAT 'HH:mm'", "column 'x': the format 'HH:mm' has no year; write yyyy"),
        ("x INT FROM 'a.b'", "column 'x': the path 'a.b' does not begin with '$'"),
        ("x INT FROM a.b", "expected a quoted string"),
        ("x INT NOT NULL NOT NULL", "column 'x' has NOT twice"),
        ("x INT FROM '$.a' FROM '$.b'", "column 'x' has FROM twice"),
        ("x INT DEFAULT", "DEFAULT requires a quoted string, a number, TRUE, FALSE or NULL"),
        ("x INT DEFAULT now()", "DEFAULT requires a quoted string, a number, TRUE"),
        ("x INT DEFAULT 1 DEFAULT 2", "column 'x' has DEFAULT twice"),
        ("x INT DEFAULT 'a'", "column 'x': the default \"a\" is not of type INT"),
        ("_x INT", "column names that begin with '_' are reserved"),
    ],
)
def test_a_mistake_is_named(text: str, sentence: str) -> None:
    with pytest.raises(BadDefinition) as caught:
        column(text)
    assert caught.value.message.startswith(sentence)
    assert str(caught.value.origin) == "a.sql:1"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x INT FROM '$.a'", "the column 'x' has a path, but CSV events have no paths"),
        ("x ARRAY<INT>", "the type ARRAY of column 'x' is not supported in CSV events"),
        ("x STRUCT<a: INT>", "the type STRUCT of column 'x' is not supported in CSV events"),
        ("x VARIANT", "the type VARIANT of column 'x' is not supported in CSV events"),
    ],
)
def test_what_csv_cannot_hold_is_refused_when_it_is_defined(text: str, sentence: str) -> None:
    with pytest.raises(Unsupported) as caught:
        column(text, " WITH (format = 'csv')")
    assert caught.value.message == sentence


def test_a_table_has_no_paths_and_no_formats() -> None:
    text = "CREATE TABLE t (x INT FROM '$.a') USING json LOCATION 'x.json'"
    with pytest.raises(HeadraceError) as caught:
        read_statements(text, "a.sql")
    assert caught.value.message == (
        "column 'x' of table 't' cannot have FROM '$.a'; only columns of streams can"
    )


@pytest.mark.parametrize(
    ("clause", "sql"),
    [
        ("GENERATED ALWAYS AS (last * 2)", "last * 2"),
        ("generated always as ((last + 1) % 3)", "(last + 1) % 3"),
        ("COMMENT 'a' GENERATED ALWAYS AS (concat(')', last, '('))", "concat(')', last, '(')"),
        ("GENERATED ALWAYS AS (last -- the last one)\n + 1) COMMENT 'b'",
         "last -- the last one)\n + 1"),
    ],
)  # fmt: skip
def test_a_generated_column_has_its_expression_as_it_is_written(clause: str, sql: str) -> None:
    found = column(f"a DECIMAL(5,2) {clause}")
    assert found == Column("a", Type.parse("DECIMAL(5,2)"), generated=ComputedExpression(sql))
    assert found.clauses == f"GENERATED ALWAYS AS ({sql})"


def test_a_generated_column_is_in_no_event() -> None:
    (stream,) = read_statements("CREATE STREAM s (a INT, b INT GENERATED ALWAYS AS (a), c INT)", "")
    assert isinstance(stream, StreamDefinition)
    assert stream.schema.stored.names == ("a", "c")
    assert [each.name for each in stream.schema.computed] == ["b"]
    assert stream.schema.stored_ddl == "`a` INT, `c` INT"
