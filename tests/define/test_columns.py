"""One column as a definition writes it: its type, its clauses in any order, and what is refused."""

from __future__ import annotations

from itertools import permutations

import pytest

from headrace.core.errors import BadDefinition, HeadraceError, Unsupported
from headrace.core.schema import Column, Type
from headrace.define.definitions import StreamDefinition
from headrace.define.statements import read_statements


def column(text: str, options: str = "") -> Column:
    (stream,) = read_statements(f"CREATE STREAM s ({text}, last INT){options};", "a.sql")
    assert isinstance(stream, StreamDefinition)
    assert stream.schema.columns[1] == Column("last", Type("INT"))
    return stream.schema.columns[0]


CLAUSES = ["NOT NULL", "FORMAT 'epoch_ms'", "FROM '$.a[\"b c\"]'", "COMMENT 'NOT NULL, FROM here'"]


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


def test_a_path_is_kept_in_one_spelling() -> None:
    assert column("x INT FROM '$[''a''].b'").path == column("""x INT FROM '$."a"["b"]'""").path


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x BLOB", "column 'x': the type BLOB is not supported"),
        ("x ARRAY<VARIANT>", "column 'x': the type ARRAY<VARIANT> has VARIANT as a part"),
        ("x MAP<INT, INT>", "column 'x': the type MAP<INT, INT> has keys of type INT"),
        ("x INT FORMAT 'epoch_s'", "column 'x': FORMAT is for a TIMESTAMP, and it is INT"),
        ("x TIMESTAMP FORMAT 'HH:mm'", "column 'x': the format 'HH:mm' has no year; write yyyy"),
        ("x INT FROM 'a.b'", "column 'x': the path 'a.b' does not begin with '$'"),
        ("x INT FROM a.b", "a text in quotes is expected"),
        ("x INT NOT NULL NOT NULL", "column 'x' has NOT twice"),
        ("x INT FROM '$.a' FROM '$.b'", "column 'x' has FROM twice"),
        ("_x INT", "columns that begin with '_' are kept for Headrace itself"),
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
        ("x INT FROM '$.a'", "the column 'x' has a path, which CSV events do not have"),
        ("x ARRAY<INT>", "the column 'x' is an array, which CSV events cannot hold"),
        ("x STRUCT<a: INT>", "the column 'x' is a struct, which CSV events cannot hold"),
        ("x VARIANT", "the column 'x' is a variant, which CSV events cannot hold"),
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
        "column 'x' of table 't' has FROM '$.a', which only columns of streams have"
    )
