"""What each statement becomes. What is refused is in tests/plans/error_*.sql, and here only where
the same sentence is met in many places.
"""

from __future__ import annotations

import pytest

from headrace.core.errors import BadDefinition
from headrace.core.origin import Origin
from headrace.core.schema import Column, Schema, Type
from headrace.core.time import MINUTE
from headrace.define.definitions import (
    PaceDefinition,
    QueryDefinition,
    StreamDefinition,
    TableDefinition,
    Watermark,
)
from headrace.define.statements import _STREAM_OPTIONS, _WATERMARK_OPTIONS, read_statements

STRING, INT, TIME = Type("STRING"), Type("INT"), Type("TIMESTAMP")


def one(text: str) -> object:
    (definition,) = read_statements(text, "shop.sql")
    return definition


def test_stream_is_read_with_all_that_it_says() -> None:
    text = """
-- What people do.
CREATE STREAM clicks (
  user STRING NOT NULL COMMENT 'who',
  tag VARCHAR(20),
  ts TIMESTAMP,
  WATERMARK ts DELAY OF INTERVAL 10 MINUTES
) WITH (source = 'generator', format = 'csv', key = 'user', id = 'event_id', partitions = 4,
        events_per_second = -5, 'file.name' = 'a b', to.come 'x');
"""
    assert one(text) == StreamDefinition(
        "clicks",
        Schema(
            (
                Column("user", STRING, False),
                Column("tag", STRING),
                Column("ts", TIME),
            )
        ),
        Origin("shop.sql", 3),
        Watermark("ts", 10 * MINUTE),
        source="generator",
        format="csv",
        key="user",
        id="event_id",
        partitions=4,
        options={"events_per_second": "-5", "file.name": "a b", "to.come": "x"},
    )


def test_stream_that_says_only_its_columns_has_the_defaults() -> None:
    assert one("create stream a (x int)") == StreamDefinition(
        "a",
        Schema((Column("x", INT),)),
        Origin("shop.sql", 1),
        watermark=None,
        source="http",
        format="json",
        key=None,
        id=None,
        partitions=None,
        options={},
    )


def test_every_option_of_a_stream_is_one_of_its_fields() -> None:
    fields = {
        *StreamDefinition.__slots__,
        *(f.removesuffix("_us") for f in PaceDefinition.__slots__),
    }
    plain = [name for name in _STREAM_OPTIONS if name not in _WATERMARK_OPTIONS]
    assert [name for name in plain if name not in fields] == []


def test_idle_and_ahead_of_a_watermark_are_options_of_the_stream() -> None:
    text = (
        "CREATE STREAM a (ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 10 MINUTES) "
        "WITH (watermark.idle = '30 seconds', watermark.ahead = '5 minutes')"
    )
    (stream,) = read_statements(text, "a.sql")
    assert isinstance(stream, StreamDefinition)
    assert stream.watermark == Watermark("ts", 10 * MINUTE, 5 * MINUTE, MINUTE // 2)
    assert stream.options == {}


@pytest.mark.parametrize(
    "delay", ["10 MINUTES", "'10' MINUTES", "'10 minutes'", "600 s", "'9 minutes 60 seconds'"]
)
def test_delay_is_read_in_each_spelling(delay: str) -> None:
    text = f"CREATE STREAM a (ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL {delay})"
    (stream,) = read_statements(text, "a.sql")
    assert isinstance(stream, StreamDefinition)
    assert stream.watermark == Watermark("ts", 10 * MINUTE)


def test_watermark_may_stand_before_its_column() -> None:
    text = "CREATE STREAM a (WATERMARK TS DELAY OF INTERVAL 1 MINUTE, ts TIMESTAMP)"
    (stream,) = read_statements(text, "a.sql")
    assert isinstance(stream, StreamDefinition)
    assert stream.schema.names == ("ts",)
    assert stream.watermark == Watermark("TS", MINUTE)


def test_table_is_read_with_its_options_and_place() -> None:
    text = (
        "CREATE TABLE pages (url STRING) USING CSV "
        "OPTIONS (header 'false', sep = ';') LOCATION 'a/b.csv'"
    )
    assert one(text) == TableDefinition(
        "pages",
        Schema((Column("url", STRING),)),
        "csv",
        "a/b.csv",
        {"header": "false", "sep": ";"},
        Origin("shop.sql", 1),
    )


@pytest.mark.parametrize(("word", "kind"), [("VIEW", "view"), ("STREAM", "stream")])
def test_select_is_kept_as_written_with_the_place_where_it_begins(word: str, kind: str) -> None:
    select = "SELECT  Url, count( * )\n  -- of each\nFROM clicks GROUP BY Url"
    assert one(f"\nCREATE {word} v AS\n\n  {select}\n;\n") == QueryDefinition(
        "v", kind, select, Origin("shop.sql", 2), Origin("shop.sql", 4)
    )


def test_statements_are_split_at_semicolons_outside_texts_and_comments() -> None:
    text = """;; CREATE VIEW a AS SELECT ';' AS x FROM c; -- ;
/* ; */ CREATE VIEW b AS SELECT 1 FROM c;"""
    found = read_statements(text, "a.sql")
    assert [(d.name, d.query, d.origin.line) for d in found if isinstance(d, QueryDefinition)] == [
        ("a", "SELECT ';' AS x FROM c", 1),
        ("b", "SELECT 1 FROM c", 2),
    ]


@pytest.mark.parametrize("text", ["", "  \n", ";", "-- nothing\n", "/* nothing */"])
def test_file_without_statements_defines_nothing(text: str) -> None:
    assert read_statements(text, "a.sql") == []


@pytest.mark.parametrize("name", ["clicks", "`clicks`", "Ünïcode", "comment", "`select`", "date"])
def test_name_may_be_any_word(name: str) -> None:
    (stream,) = read_statements(f"CREATE STREAM {name} ({name} INT)", "a.sql")
    assert isinstance(stream, StreamDefinition)
    assert (stream.name, stream.schema.names) == (name.strip("`"), (name.strip("`"),))


@pytest.mark.parametrize("end", range(2, 17))
def test_statement_that_ends_anywhere_is_refused_at_its_line(end: int) -> None:
    words = "CREATE STREAM a ( ts TIMESTAMP , WATERMARK ts DELAY OF INTERVAL 1 MINUTE ) WITH ("
    whole = words.split()
    text = "\n" + " ".join(whole[:end])
    if end == 15:  # the statement is whole without WITH
        assert one(text)
        return
    with pytest.raises(BadDefinition) as caught:
        read_statements(text, "a.sql")
    assert caught.value.origin == Origin("a.sql", 2)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("CREATE STREAM a (x INT,\n y BLOB)", "column 'y': the type BLOB is not supported"),
        (
            "CREATE STREAM a (x INT)\nWITH (key = 'x'\nid = 'y')",
            "expected ), got 'id'",
        ),
        ("CREATE VIEW v\n\nSELECT 1", "expected AS, got 'SELECT'"),
    ],
)
def test_mistake_is_told_at_the_line_of_its_word(text: str, sentence: str) -> None:
    with pytest.raises(BadDefinition) as caught:
        read_statements("\n" + text, "a.sql")
    assert caught.value.message == sentence
    assert str(caught.value.origin) == f"a.sql:{text.count(chr(10)) + 2}"
