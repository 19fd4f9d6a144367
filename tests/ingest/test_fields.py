"""What is read from a record depends on that record alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.errors import BadDefinition
from headrace.core.schema import Column, Schema, Type
from headrace.ingest.fields import field_reader

from .conftest import stream

JSON = field_reader(stream(key="user", id="event_id"))
CSV = field_reader(stream(format="csv", key="USER", id="ms"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"ada"', "ada"),
        ('"\\u0061da"', "ada"),
        ("17", 17),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("1.0", b"1.0"),
        ("1e400", b"1e400"),
        ("true", b"true"),
        ("null", None),
        ("[1]", None),
        ('{"a":1}', None),
    ],
)
def test_a_value_is_read_by_its_kind(text: str, value: object) -> None:
    record = f'{{"user":{text},"event_id":{text}}}'.encode()
    assert JSON([record]) == ([value], [value])


PATHS = Schema(
    (
        Column("who", Type("STRING"), path="$.actor.id"),
        Column("number", Type("BIGINT"), path='$.actor["ids"][0]'),
    )
)


@pytest.mark.parametrize(
    ("text", "key", "number"),
    [
        ('{"actor":{"id":"ada","ids":[17]}}', "ada", 17),
        ('{"actor":{"id":1.50,"ids":[true]}}', b"1.50", b"true"),
        ('{"actor":{"id":{"x":1},"ids":[]}}', None, None),
        ('{"actor":"ada","who":"eve","number":3}', None, None),
        ('{"actor":{"id":"ada","ids":[17]}', None, None),
        ("nonsense", None, None),
    ],
)
def test_a_key_or_id_at_a_path_is_read_there(text: str, key: object, number: object) -> None:
    read = field_reader(stream(schema=PATHS, key="WHO", id="number"))
    assert read([text.encode()]) == ([key], [number])
    only = field_reader(stream(schema=PATHS, key="who", id="event_id"))
    assert only([text.encode()]) == ([key], [None])


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"nonsense",
        b'{"user":"a","event_id":"b"',
        b'{"user":"\xff","event_id":"b"}',
        b"[" * 10_000,
        b'{"user":"a","event_id":"b"} {"user":"c","event_id":"d"}',
        b'{"user":"\\ud800","event_id":"b"}',
    ],
)
def test_a_malformed_record_has_no_fields_and_does_not_touch_its_neighbours(record: bytes) -> None:
    sound = b'{"user":"ada","event_id":"e1"}'
    assert JSON([sound, record, sound]) == (["ada", None, "ada"], ["e1", None, "e1"])


def test_two_halves_of_an_event_are_not_one_event() -> None:
    halves = [b'{"user":"a"', b',"event_id":"b"}', b'{"user":"c"} {"user":"d"}']
    assert JSON(halves) == ([None] * 3, [None] * 3)


_pieces = st.sampled_from(
    [b'{"user":"a",', b'"event_id":1}', b"\n", b"}", b"{", b'"', b"\xff", b"[1"]
)
_sound = st.builds(
    lambda u, i: json.dumps({"user": u, "event_id": i, "x": [1]}).encode(),
    st.one_of(st.text(), st.integers(), st.floats(allow_nan=False, allow_infinity=False)),
    st.one_of(st.none(), st.text(), st.booleans()),
)
_records = st.lists(st.one_of(st.binary(max_size=20), st.lists(_pieces).map(b"".join), _sound))


@given(_records)
def test_together_or_alone_a_record_is_read_the_same(records: list[bytes]) -> None:
    alone = [JSON([record]) for record in records]
    assert JSON(records) == ([k for (k,), _ in alone], [i for _, (i,) in alone])


def test_a_field_has_the_declared_spelling_whatever_the_definition_writes() -> None:
    assert field_reader(stream(key="USER"))([b'{"user":"ada","USER":"bob"}']) == (["ada"], [])


def test_csv_fields_are_columns_of_the_declared_order() -> None:
    rows = [b"ada,2026-01-01,5", b'"a, b",2026-01-01,6', b"ada", b'"open', b"\xff,x,1", b",x,"]
    assert CSV(rows) == (
        ["ada", "a, b", "ada", None, None, None],
        ["5", "6", None, None, None, None],
    )


def test_a_csv_stream_without_its_id_among_the_columns_is_refused() -> None:
    with pytest.raises(BadDefinition) as refused:
        field_reader(stream(format="csv", id="event_id"))
    assert str(refused.value) == (
        "BadDefinition: the id 'event_id' of stream 'clicks' is not one of its columns\n"
        "  detail: the stream reads CSV, which has only the declared columns.\n"
        "  hint: available columns: user, ts, ms.\n"
        "  at shop.sql:3"
    )


def test_one_field_may_be_the_key_and_the_id() -> None:
    values = ('"ada"', "7", "1.50", "true", "null", "[1]", "99999999999999999999", "half", '"a')
    records = [b'{"user":%s}' % value.encode() for value in values]
    alone, _ = field_reader(stream(key="user"))(records)
    assert field_reader(stream(key="user", id="user"))(records) == (alone, alone)
