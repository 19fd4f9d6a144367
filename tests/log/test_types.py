"""Every type on its way in: what is read, what is refused and with which words, and that neither
depends on neighbours, cuts, or who asks for which columns.
"""

from __future__ import annotations

import json
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from chance import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.event import EventStatus
from headrace.core.position import Interval
from headrace.core.schema import Column, Schema, Type
from headrace.define.definitions import Watermark
from headrace.log.block import Block
from headrace.log.decode import Decoder
from headrace.log.decode_errors import kind_of

TEXTS = {
    "price": "DECIMAL(10,2)", "wide": "DECIMAL(38,0)", "tiny": "TINYINT", "small": "SMALLINT",
    "single": "FLOAT", "body": "BINARY", "local": "TIMESTAMP_NTZ", "any": "VARIANT",
    "cart": "STRUCT<id: BIGINT, items: ARRAY<STRUCT<sku: STRING, price: DECIMAL(5,1)>>>",
    "labels": "MAP<STRING, DATE>", "grid": "ARRAY<ARRAY<INT>>",
    "when": "ARRAY<STRUCT<at: TIMESTAMP, local: TIMESTAMP_NTZ>>",
}  # fmt: skip
SCHEMA = Schema(
    (
        *(Column(name, Type.parse(text)) for name, text in TEXTS.items()),
        Column("ms", Type("TIMESTAMP"), format="epoch_ms"),
        Column("apache", Type("TIMESTAMP"), format="dd/MMM/yyyy:HH:mm:ss Z"),
        Column("login", Type("STRING"), path="$.actor.login"),
        Column("first", Type("INT"), path='$.actor["a b"][0]'),
        Column("day", Type("DATE"), path="$.actor.day"),
    )
)
DECODER = Decoder(SCHEMA, "json", Watermark("ms", 10_000_000))


def rows(*records: bytes, decoder: Decoder = DECODER) -> list[dict[str, Any]]:
    block = Block.of(0, 0, records, bytes(len(records)))
    return decoder.decode([block], 0, None, raw=True).table.to_pylist()


NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
GOOD: list[tuple[str, str, Any]] = [
    ('"price": 0.10', "price", Decimal("0.10")),
    ('"price": "19.99"', "price", Decimal("19.99")),
    ('"price": -99999999.99', "price", Decimal("-99999999.99")),
    ('"price": 1e7', "price", Decimal("10000000.00")),
    ('"price": 1.5000000000000000000000000', "price", Decimal("1.50")),
    ('"price": -0.0', "price", Decimal("0.00")),
    ('"price": 0e-99', "price", Decimal("0.00")),
    ('"price": null', "price", None),
    ('"wide": ' + "9" * 38, "wide", Decimal("9" * 38)),
    ('"tiny": -128', "tiny", -128),
    ('"small": 32767', "small", 32767),
    ('"single": 3.4028235e38', "single", pytest.approx(3.4028235e38)),
    ('"single": 0.1', "single", 0.10000000149011612),
    ('"single": 7', "single", 7.0),
    ('"body": "aGk="', "body", b"hi"),
    ('"body": ""', "body", b""),
    ('"local": "2026-01-01T00:00:00.1234567"', "local", datetime(2026, 1, 1, 0, 0, 0, 123456)),
    ('"any": {"b": [1.50, 12345678901234567890123], "a": "\\u00e4"}', "any",
     '{"b":[1.50,12345678901234567890123],"a":"ä"}'),
    ('"any": {"a": 1, "a": 2}', "any", '{"a":2}'),
    ('"any": "text"', "any", '"text"'),
    ('"any": null', "any", None),
    ('"cart": {"id": 1, "more": [], "items": [{"sku": "k", "price": "1.5"}, null, {}]}', "cart",
     {"id": 1, "items": [{"sku": "k", "price": Decimal("1.5")}, None,
                         {"sku": None, "price": None}]}),
    ('"cart": {}', "cart", {"id": None, "items": None}),
    ('"labels": {"a": "2026-01-02", "b": null, "a": "2026-01-03"}', "labels",
     [("a", date(2026, 1, 3)), ("b", None)]),
    ('"grid": [[1, null], [], null]', "grid", [[1, None], [], None]),
    ('"when": [{"at": "2026-01-01T01:00:00+01:00", "local": "2026-01-01 00:00"}, null]', "when",
     [{"at": NEW_YEAR, "local": datetime(2026, 1, 1)}, None]),
    ('"ms": 1767225600000', "ms", NEW_YEAR),
    ('"ms": "1767225600000.9999"', "ms", NEW_YEAR.replace(microsecond=999)),
    ('"ms": -62135596800000', "ms", datetime(1, 1, 1, tzinfo=UTC)),
    ('"apache": "01/Jan/2026:01:00:00 +0100"', "apache", NEW_YEAR),
    ('"actor": {"login": "ada"}', "login", "ada"),
    ('"actor": {"login": "eve", "login": "ada"}', "login", "ada"),
    ('"actor": "none"', "login", None),
    ('"actor": {"a b": [7]}', "first", 7),
    ('"actor": {"a b": {"0": 7}}', "first", None),
    ('"actor": {"day": "2026-01-01"}', "day", date(2026, 1, 1)),
]  # fmt: skip
BAD: list[tuple[str, str]] = [
    ('"price": 0.005', "field 'price' should be a DECIMAL(10,2), not 0.005, which has more than 2 "
     "digits after the decimal point"),
    ('"price": 100000000', "field 'price' is out of range for DECIMAL(10,2): 100000000"),
    ('"price": 1e400', "field 'price' is out of range for DECIMAL(10,2): 1e400"),
    ('"price": "NaN"', "field 'price' should be a DECIMAL(10,2), not 'NaN'"),
    ('"price": "1_0"', "field 'price' should be a DECIMAL(10,2), not '1_0'"),
    ('"price": "١"', "field 'price' should be a DECIMAL(10,2), not '١'"),
    ('"price": " 1"', "field 'price' should be a DECIMAL(10,2), not ' 1'"),
    ('"price": true', "field 'price' should be a DECIMAL(10,2), not a boolean"),
    ('"price": [1]', "field 'price' should be a DECIMAL(10,2), not an array"),
    ('"price": 1e-999999999', "field 'price' should be a DECIMAL(10,2), not 1e-999999999, which "
     "has more than 2 digits after the decimal point"),
    ('"price": ' + "9" * 5_000, "field 'price' is out of range: too many digits"),
    ('"wide": 1' + "0" * 38, "field 'wide' is out of range for DECIMAL(38,0): 1" + "0" * 38),
    ('"tiny": 128', "field 'tiny' is out of range for TINYINT"),
    ('"small": -32769', "field 'small' is out of range for SMALLINT"),
    ('"single": 3.5e38', "field 'single' is out of range for FLOAT"),
    ('"single": 1e400', "field 'single' is out of range for FLOAT"),
    ('"single": "1"', "field 'single' should be a number, not a string"),
    ('"body": "a"', "field 'body' should be base64 text, not 'a'"),
    ('"body": "aGk=\\n"', "field 'body' should be base64 text, not 'aGk=\\n'"),
    ('"body": [104]', "field 'body' should be base64 text, not an array"),
    ('"local": "2026-01-01T00:00:00Z"', "field 'local' should be a time without a zone such as "
     "'2026-01-31T12:00:00', not '2026-01-01T00:00:00Z'"),
    ('"any": [1e400]', "field 'any' is out of range for a number in a VARIANT: 1e400"),
    ('"any": {"a": ' + "1" * 400 + "}",
     f"field 'any' is out of range for a number in a VARIANT: {'1' * 60}…"),
    ('"cart": 5', "field 'cart' should be an object, not an integer"),
    ('"cart": {"id": 9223372036854775808}',
     "field 'cart.id' is out of range for BIGINT: 9223372036854775808"),
    ('"cart": {"items": [{}, {"price": 1.25}]}', "field 'cart.items[1].price' should be a "
     "DECIMAL(5,1), not 1.25, which has more than 1 digits after the decimal point"),
    ('"labels": {"a": "soon"}',
     "field 'labels.a' should be a date such as '2026-01-31', not 'soon'"),
    ('"labels": []', "field 'labels' should be an object, not an array"),
    ('"grid": [[1], [2.5]]', "field 'grid[1][0]' should be an integer, not a decimal number"),
    ('"grid": [1]', "item 0 of field 'grid' should be an array, not an integer"),
    ('"when": [null, {"at": "2026-02-30T00:00:00Z"}]', "field 'when[1].at' should be a time such "
     "as '2026-01-31T12:00:00Z', not '2026-02-30T00:00:00Z'"),
    ('"ms": 253402300800000', "field 'ms' is out of range for TIMESTAMP (years 1 to 9999): "
     "253402300800000"),
    ('"ms": 1e99', "field 'ms' is out of range for TIMESTAMP (years 1 to 9999): 1e99"),
    ('"ms": "soon"', "field 'ms' should be an epoch in milliseconds, not 'soon'"),
    ('"ms": false', "field 'ms' should be an epoch in milliseconds, not a boolean"),
    ('"apache": "31/Feb/2026:00:00:00 +0000"', "field 'apache' should be a time in the format "
     "'dd/MMM/yyyy:HH:mm:ss Z', not '31/Feb/2026:00:00:00 +0000'"),
    ('"actor": {"login": 5}',
     "field 'login' at $.actor.login should be a string, not an integer"),
    ('"actor": {"a b": [2147483648]}',
     "field 'first' at $.actor[\"a b\"][0] is out of range for INT: 2147483648"),
    ('"actor": {"day": "x"}', "field 'day' at $.actor.day should be a date such as '2026-01-31', "
     "not 'x'"),
    ('"any": ' + "[" * 200 + "]" * 200, "the event is nested more than 128 levels deep"),
    ('"any": NaN', "not JSON: invalid character (byte 8)"),
    ('"actor": {"login": "\\ud800"}', "not JSON: a lone surrogate"),
]  # fmt: skip


def event(fields: str) -> bytes:
    return ("{" + fields + "}").encode()


@pytest.mark.parametrize(("fields", "name", "value"), GOOD)
def test_a_value_is_read_exactly(fields: str, name: str, value: Any) -> None:
    (row,) = rows(event(fields))
    assert (row["_reason"], row[name]) == (None, value)


@pytest.mark.parametrize(("fields", "reason"), BAD)
def test_a_value_that_its_type_does_not_take_is_a_dead_letter(fields: str, reason: str) -> None:
    before, bad, after = rows(event('"tiny": 1'), event(fields), event('"price": 2'))
    assert (bad["_reason"], bad["_status"]) == (reason, EventStatus.DEAD_LETTER)
    assert all(bad[name] is None for name in SCHEMA.names)
    assert (before["tiny"], after["price"]) == (1, Decimal("2.00"))
    assert kind_of(reason) != "other"


def test_every_type_has_a_good_and_a_bad_value() -> None:
    assert {name for _, name, _ in GOOD} == set(SCHEMA.names)
    said = " ".join(reason for _, reason in BAD)
    assert [name for name in SCHEMA.names if f"'{name}" not in said] == []


RECORD = st.sampled_from([event(f) for f, *_ in GOOD] + [event(f) for f, _ in BAD])
FRAGMENT = st.sampled_from([b"", b"{", b'{"price":1', b"}", b'{"cart":{"id":1}', b"{}]}", b"[]"])


@settings(max_examples=examples(150))
@given(st.lists(RECORD | FRAGMENT | st.binary(max_size=9), max_size=8))
def test_an_event_means_the_same_whatever_its_neighbours(records: list[bytes]) -> None:
    alone = [rows(record)[0] for record in records]
    timeless = {"_offset": 0, "_late": False, "_lateness": 0}
    assert [row | timeless for row in rows(*records)] == [row | timeless for row in alone]


@settings(max_examples=examples(60))
@given(st.lists(RECORD, min_size=1, max_size=12), st.lists(st.integers(0, 12), max_size=3))
def test_cutting_a_range_anywhere_changes_nothing(records: list[bytes], cuts: list[int]) -> None:
    whole = DECODER.decode([Block.of(0, 0, records, bytes(len(records)))], 0, None, raw=True)
    edges = sorted({0, len(records), *(min(cut, len(records)) for cut in cuts)})
    block = Block.of(0, 0, records, bytes(len(records)))
    parts, high = [], None
    for lower, upper in pairwise(edges):
        part = DECODER.decode([block.trimmed(Interval(lower, upper))], 0, high, raw=True)
        parts, high = [*parts, part.table], part.high_us
    assert pa.concat_tables(parts).to_pylist() == whole.table.to_pylist()
    assert high == whole.high_us


@settings(max_examples=examples(100))
@given(st.lists(RECORD, min_size=1, max_size=10))
def test_all_at_once_and_one_by_one_are_the_same(records: list[bytes]) -> None:
    """A duplicate among the events makes the decoder take them one by one."""
    quick = rows(*records)
    block = Block.of(0, 0, [*records, b"{}"], [*bytes(len(records)), int(EventStatus.DUPLICATE)])
    slow = DECODER.decode([block], 0, None, raw=True).table.to_pylist()
    assert slow[:-1] == quick


@given(
    st.decimals(
        allow_nan=False, allow_infinity=False, places=2, min_value=-(10**9), max_value=10**9
    )
)
def test_no_digit_of_a_decimal_is_lost(number: Decimal) -> None:
    fits = abs(number) < 10**8
    for text in (str(number), f'"{number}"'):
        (row,) = rows(event(f'"price": {text}'))
        assert (row["price"], row["_reason"] is None) == (number if fits else None, fits)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
).filter(lambda value: "Infinity" not in json.dumps(value))


@given(JSON_VALUES)
def test_a_variant_is_the_json_that_came(value: Any) -> None:
    (row,) = rows(event(f'"any": {json.dumps(value)}'))
    assert (None if row["any"] is None else json.loads(row["any"])) == value


def test_a_path_that_must_find_something_and_does_not_is_a_dead_letter() -> None:
    user = Column("user", Type("STRING"), nullable=False, path="$.actor.id")
    decoder = Decoder(Schema((user, Column("actor", Type("VARIANT")))))
    found = rows(
        b'{"actor":{"id":"a"}}', b"{}", b'{"actor":{"id":null}}', b'{"user":"x"}', decoder=decoder
    )
    missing = "field 'user' at $.actor.id is missing or null"
    assert [row["_reason"] for row in found] == [None, missing, missing, missing]
    assert (found[0]["user"], found[0]["actor"]) == ("a", '{"id":"a"}')


def test_a_time_that_is_a_number_moves_the_watermark() -> None:
    records = [event(f'"ms": {1_767_225_600_000 + s * 1000}') for s in (0, 60, 30)]
    block = Block.of(0, 1_767_225_600_000_000, records, bytes(3))
    decoded = DECODER.decode([block], 0, None, raw=False)
    assert decoded.table["_lateness"].to_pylist() == [0, 0, 20_000_000]
    assert decoded.high_us == 1_767_225_660_000_000


def test_a_decoder_is_pickled_as_what_it_was_made_from() -> None:
    again = pickle.loads(pickle.dumps(DECODER))
    assert (again.schema, again.watermark) == (DECODER.schema, DECODER.watermark)
    block = Block.of(0, 0, [event('"price": 1')], bytes(1))
    assert again.decode([block], 0, None, raw=False).table["price"].to_pylist() == [Decimal(1)]


DEFAULTED = Schema(
    (
        Column("kind", Type("STRING"), nullable=False, default='"none"'),
        Column("n", Type("INT"), default="-1"),
        Column("price", Type.parse("DECIMAL(4,2)"), default="1.5"),
        Column("day", Type("DATE"), default='"2026-01-01"'),
    )
)
NONE = ["none", -1, Decimal("1.50"), date(2026, 1, 1)]


@pytest.mark.parametrize("format", ["json", "csv"])
def test_a_default_stands_for_what_is_missing_or_null_and_for_nothing_else(format: str) -> None:
    some, missing, null, bad = {
        "json": (b'{"kind":"a","n":0,"price":0,"day":"2026-01-02"}', b"{}",
                 b'{"kind":null,"n":null,"price":null,"day":null}', b'{"n":"x"}'),
        "csv": (b"a,0,0,2026-01-02", b",,,", b",,,", b",x,,"),
    }[format]  # fmt: skip
    records, statuses = (
        [some, missing, null, bad, missing],
        [0, 0, 0, 0, int(EventStatus.DUPLICATE)],
    )
    block = Block.of(0, 0, records, statuses)
    table = Decoder(DEFAULTED, format).decode([block], 0, None, raw=False).table
    found = [list(row.values())[:4] for row in table.to_pylist()]
    values = ["a", 0, Decimal(0), date(2026, 1, 2)]
    assert found == [values, NONE, NONE, [None] * 4, [None] * 4]
    assert rows(missing, some, decoder=Decoder(DEFAULTED, format))[0]["kind"] == "none"


CSV_NAMES = ["price", "tiny", "single", "body", "local"]
CSV_SCHEMA = Schema(
    (
        *(Column(name, Type.parse(TEXTS[name])) for name in CSV_NAMES),
        Column("ms", Type("TIMESTAMP"), format="epoch_ms"),
    )
)


@pytest.mark.parametrize(
    ("record", "found"),
    [
        (b"1.50,-128,0.5,aGk=,2026-01-01T00:00:00,1767225600000",
         [Decimal("1.50"), -128, 0.5, b"hi", datetime(2026, 1, 1), NEW_YEAR]),
        (b",,,,,", [None] * 6),
        (b"1.555,1,1,,,", "field 'price' should be a DECIMAL(10,2), not '1.555', which has more "
         "than 2 digits after the decimal point"),
        (b"1,128,1,,,", "field 'tiny' is out of range for TINYINT"),
        (b"1,1,1e39,,,", "field 'single' is out of range for FLOAT"),
        (b"1,1,1,?,,", "field 'body' should be base64 text, not '?'"),
        (b"1,1,1,,,x", "field 'ms' should be an epoch in milliseconds, not 'x'"),
    ],
)  # fmt: skip
def test_a_csv_event_has_the_types_that_fit_in_a_field(record: bytes, found: Any) -> None:
    (row,) = rows(record, decoder=Decoder(CSV_SCHEMA, "csv"))
    values = [row[name] for name in CSV_SCHEMA.names]
    assert (row["_reason"] or values) == found
