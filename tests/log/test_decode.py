"""The laws of headrace/log/decode.py: a record is a row; no cut or neighbour changes it."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from chance import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.errors import BadDefinition, UnknownColumn, Unsupported
from headrace.core.event import DAMAGED, OVERLONG, EventStatus
from headrace.core.position import Interval
from headrace.core.schema import Column, Schema, Type
from headrace.core.time import from_iso
from headrace.define.definitions import Watermark
from headrace.log.block import Block
from headrace.log.decode import MARKED, Decoder
from headrace.log.decode_errors import kind_of

SCHEMA = Schema(
    (
        Column("user", Type("STRING"), nullable=False),
        Column("ts", Type("TIMESTAMP"), nullable=False),
        Column("ms", Type("BIGINT")),
        Column("n", Type("INT")),
        Column("score", Type("DOUBLE")),
        Column("ok", Type("BOOLEAN")),
        Column("day", Type("DATE")),
        Column("tags", Type.array_of(Type("STRING"))),
        Column("odd name", Type("STRING")),
    )
)
NOW = from_iso("2026-01-01T00:00:00Z")
TS = "2026-01-01T00:00:00Z"
FRACTION = datetime(2026, 1, 1, 0, 0, 0, 123456, UTC)
JSON = Decoder(SCHEMA)


def block(records: Sequence[bytes], first: int = 0, statuses: Sequence[int] | None = None) -> Block:
    return Block.of(first, NOW, records, statuses or bytes(len(records)))


def rows(decoder: Decoder, *records: bytes) -> list[dict[str, Any]]:
    return decoder.decode([block(records)], 0, None, raw=True).table.to_pylist()


def event(**fields: Any) -> bytes:
    return json.dumps({"user": "ada", "ts": TS, **fields}).encode()


GOOD: list[tuple[bytes, str, Any]] = [
    (event(), "user", "ada"),
    (event(), "ts", datetime(2026, 1, 1, tzinfo=UTC)),
    (event(), "ms", None),
    (event(ms=None), "ms", None),
    (event(ms=2**63 - 1), "ms", 2**63 - 1),
    (event(ms=-(2**63)), "ms", -(2**63)),
    (event(n=-(2**31)), "n", -(2**31)),
    (event(score=3), "score", 3.0),
    (event(score=1e300), "score", 1e300),
    (event(ok=True), "ok", True),
    (event(day="2024-02-29"), "day", date(2024, 2, 29)),
    (event(tags=["a", None]), "tags", ["a", None]),
    (event(tags=[]), "tags", []),
    (event(**{"odd name": "x"}), "odd name", "x"),
    (event(user="zoë \U0001f600 \u0000"), "user", "zoë \U0001f600 \u0000"),
    (event(user=""), "user", ""),
    (event(other={"deep": [1, {"user": 5}]}), "user", "ada"),
    (event(ts="2026-01-01 01:00:00.1234567+01:00"), "ts", FRACTION),
    (b'{"user":"first","ts":"%s","user":"last"}' % TS.encode(), "user", "last"),
    (b' \t{"user" : "ada",\r\n"ts":"%s"} ' % TS.encode(), "user", "ada"),
]  # fmt: skip


@pytest.mark.parametrize(("record", "name", "value"), GOOD)
def test_an_event_decodes(record: bytes, name: str, value: Any) -> None:
    (row,) = rows(JSON, record)
    assert (row["_status"], row["_reason"], row["_raw"]) == (EventStatus.EVENT, None, record)
    assert row[name] == value


BAD: list[tuple[bytes, str]] = [
    (event(ms="5"), "field 'ms' should be an integer, not a string"),
    (event(ms=1.5), "field 'ms' should be an integer, not a decimal number"),
    (event(ms=True), "field 'ms' should be an integer, not a boolean"),
    (event(ms=2**63), "field 'ms' is out of range for BIGINT"),
    (event(ms=10**4000), "field 'ms' is out of range for BIGINT"),
    (event(n=2**31), "field 'n' is out of range for INT"),
    (event(score="x"), "field 'score' should be a number, not a string"),
    (event(score=10**400), "field 'score' is out of range for DOUBLE"),
    (event(ok=1), "field 'ok' should be true or false, not an integer"),
    (event(user=None), "field 'user' must not be null"),
    (event(user=5), "field 'user' should be a string, not an integer"),
    (event(user={}), "field 'user' should be a string, not an object"),
    (event(tags="a"), "field 'tags' should be an array, not a string"),
    (event(tags=["a", 5]), "item 1 of field 'tags' should be a string, not an integer"),
    (event(**{"odd name": 5}), "field 'odd name' should be a string, not an integer"),
    (event(ts=5), "field 'ts' should be a time such as '2026-01-31T12:00:00Z', not an integer"),
    (event(ts="soon"), "field 'ts' should be a time such as '2026-01-31T12:00:00Z', not 'soon'"),
    (event(day="soon"), "field 'day' should be a date such as '2026-01-31', not 'soon'"),
    (b'{"ts":"%s"}' % TS.encode(), "field 'user' is missing"),
    (b"[1]", "an event should be an object, not an array"),
    (b"5", "an event should be an object, not an integer"),
    (b"hello", "not JSON: invalid character (byte 0)"),
    (b'{"user":"ada"', "not JSON: unexpected end of input"),
    (event() + event(), f"not JSON: trailing characters (byte {len(event()) + 1})"),
]  # fmt: skip


@pytest.mark.parametrize(("record", "reason"), BAD)
def test_a_bad_event_is_a_dead_letter_with_a_plain_reason(record: bytes, reason: str) -> None:
    (row,) = rows(JSON, record)
    assert (row["_reason"], row["_status"]) == (reason, EventStatus.DEAD_LETTER)
    assert row["_raw"] == record
    assert all(row[name] is None for name in SCHEMA.names)


def test_good_neighbours_of_a_bad_event_are_unaffected() -> None:
    for record, _ in BAD:
        before, bad, after = rows(JSON, event(ms=1), record, event(ms=3))
        assert (before["ms"], bad["_status"], after["ms"]) == (1, EventStatus.DEAD_LETTER, 3)
        assert before["_status"] == after["_status"] == EventStatus.EVENT


ANY_RECORD = st.sampled_from([r for r, *_ in GOOD] + [r for r, _ in BAD]) | st.binary(max_size=9)
FRAGMENT = st.sampled_from(
    [b"", event(), event() * 2, b"{", b"}", b'{"user":"ada",', b'"ts":"x"}', b'{"a":{}', b"{}]}"]
)  # fmt: skip


@settings(max_examples=examples(150))
@given(st.lists(ANY_RECORD | FRAGMENT, max_size=8))
def test_an_event_means_the_same_whatever_its_neighbours(records: list[bytes]) -> None:
    together = rows(JSON, *records)
    alone = [rows(JSON, record)[0] for record in records]
    assert [{**row, "_offset": 0} for row in together] == alone


TIMED = Decoder(SCHEMA, "json", Watermark("ts", 10_000_000))
TIMES = st.integers(0, 7200).map(
    lambda s: event(ts=f"2026-01-01T{s // 3600:02}:{s // 60 % 60:02}:00")
)


@settings(max_examples=examples(100))
@given(
    st.lists(st.tuples(TIMES | ANY_RECORD, st.integers(0, 2)), min_size=1, max_size=12),
    st.lists(st.integers(0, 12), max_size=3),
    st.integers(0, 12),
)
def test_cutting_a_range_anywhere_changes_nothing(
    records: list[tuple[bytes, int]], block_cuts: list[int], cut: int
) -> None:
    edges = sorted({0, len(records), *(min(c, len(records)) for c in block_cuts)})
    blocks = [
        block([r for r, _ in records[a:b]], a, [s for _, s in records[a:b]])
        for a, b in pairwise(edges)
    ]
    whole = TIMED.decode(blocks, 3, None, raw=True)
    below = [b.trimmed(Interval(0, cut)) for b in blocks]
    above = [b.trimmed(Interval(cut, 99)) for b in blocks]
    first = TIMED.decode(below, 3, None, raw=True)
    second = TIMED.decode(above, 3, first.high_us, raw=True)
    assert pa.concat_tables([first.table, second.table]).to_pylist() == whole.table.to_pylist()
    assert second.high_us == whole.high_us
    assert whole.table["_offset"].to_pylist() == list(range(len(records)))


def test_a_late_event_is_marked_and_kept() -> None:
    records = [event(ts=f"2026-01-01T00:{m:02}:00Z") for m in (5, 4, 5)]
    decoded = TIMED.decode([block(records)], 0, None, raw=False)
    assert decoded.table["_late"].to_pylist() == [False, True, False]
    assert decoded.table["_lateness"].to_pylist() == [0, 50_000_000, 0]
    assert decoded.high_us == NOW + 5 * 60_000_000


def test_duplicates_and_conflicts_keep_their_status() -> None:
    statuses = [EventStatus.EVENT, EventStatus.DUPLICATE, EventStatus.DEAD_LETTER]
    records = [event(), event(), b"a\nb"]
    table = JSON.decode([block(records, 7, statuses)], 2, None, raw=True).table
    assert table["user"].to_pylist() == ["ada", None, None]
    assert table["_reason"].to_pylist() == [None, None, MARKED[2]]
    assert table["_status"].to_pylist() == statuses
    assert table["_raw"].to_pylist() == records
    assert table["_offset"].to_pylist() == [7, 8, 9]
    assert table["_partition"].to_pylist() == [2, 2, 2]
    assert table["_arrived_at"].to_pylist() == [datetime(2026, 1, 1, tzinfo=UTC)] * 3


def test_without_their_bytes_the_rows_are_the_same() -> None:
    records = [record for record, *_ in GOOD] + [record for record, _ in BAD]
    table = JSON.decode([block(records)], 0, None, raw=False).table
    whole = JSON.decode([block(records)], 0, None, raw=True).table
    assert table.schema == JSON.arrow_schema(raw=False)
    assert table.to_pylist() == whole.drop_columns("_raw").to_pylist()


def test_no_blocks_make_an_empty_table() -> None:
    decoded = TIMED.decode([], 0, 5, raw=True)
    assert (decoded.table.num_rows, decoded.high_us) == (0, 5)
    assert decoded.table.schema == TIMED.arrow_schema(raw=True)


CSV_SCHEMA = Schema(tuple(c for c in SCHEMA.columns if not c.type.nested))
CSV = Decoder(CSV_SCHEMA, "csv", Watermark("ts", 0))
CSV_BAD = {
    b"ada": "the line has 1 fields, expected 8",
    b"": "not CSV: the body is empty",
    b",%s,,,,,," % TS.encode(): "field 'user' must not be null",
    b"ada,%s,1.5,,,,," % TS.encode(): "field 'ms' should be an integer",
    b"ada,%s,9223372036854775808,,,,," % TS.encode(): "field 'ms' is out of range for BIGINT",
    b"ada,%s,,,nan,,," % TS.encode(): "field 'score' should be a number",
    b"ada,%s,,,1e400,,," % TS.encode(): "field 'score' is out of range for DOUBLE",
    b"ada,%s,,,,yes,," % TS.encode(): "field 'ok' should be true or false",
    b"\xff,%s,,,,,," % TS.encode(): "not CSV: not UTF-8 at byte 0",
    b"a,b\na,b": "not CSV: more than one line",
    b'"a,b': "not CSV: unexpected end of data",
}


def test_csv_events_decode_in_declared_order() -> None:
    line = b'"a, ""b""\n",2026-01-01 00:00:00,-5,7,1e3,TRUE,2026-01-31,x'
    (row,) = rows(CSV, line)
    values = [row[name] for name in CSV_SCHEMA.names]
    when = datetime(2026, 1, 1, tzinfo=UTC)
    assert values == ['a, "b"\n', when, -5, 7, 1000.0, True, date(2026, 1, 31), "x"]
    (row,) = rows(CSV, b"ada,%s,,,,,," % TS.encode())
    assert [row[name] for name in CSV_SCHEMA.names[2:]] == [None] * 6


@pytest.mark.parametrize(("line", "reason"), CSV_BAD.items())
def test_a_bad_csv_line_is_a_dead_letter(line: bytes, reason: str) -> None:
    (row,) = rows(CSV, line)
    assert (row["_reason"], row["_status"]) == (reason, EventStatus.DEAD_LETTER)


def test_decoders_that_cannot_be_are_refused() -> None:
    with pytest.raises(Unsupported, match="is not supported in CSV events"):
        Decoder(SCHEMA, "csv")
    with pytest.raises(Unsupported, match="the event format 'xml' is not supported"):
        Decoder(SCHEMA, "xml")
    with pytest.raises(UnknownColumn, match="there is no column 'when'"):
        Decoder(SCHEMA, "json", Watermark("when", 0))
    with pytest.raises(BadDefinition, match="'ms' must be TIMESTAMP, got BIGINT"):
        Decoder(SCHEMA, "json", Watermark("ms", 0))


def test_a_decoder_is_pickled_as_what_it_was_made_from() -> None:
    again = pickle.loads(pickle.dumps(TIMED))
    assert rows(again, event(ms=4)) == rows(TIMED, event(ms=4))


@pytest.mark.parametrize("mark", [OVERLONG, DAMAGED])
def test_a_record_that_was_not_read_whole_is_a_dead_letter_whatever_its_bytes_say(
    mark: int,
) -> None:
    records = [event(), event(), b"", event()]
    table = JSON.decode([block(records, 0, [0, mark, mark, 0])], 0, None, raw=True).table
    assert table["_status"].to_pylist() == [0, 2, 2, 0]
    assert table["_reason"].to_pylist() == [None, MARKED[mark], MARKED[mark], None]
    assert table["user"].to_pylist() == ["ada", None, None, "ada"]
    assert table["_raw"].to_pylist() == records


def test_every_reason_has_a_kind() -> None:
    reasons = [reason for _, reason in BAD] + list(CSV_BAD.values()) + [*MARKED.values()]
    assert "other" not in {kind_of(reason) for reason in reasons}
    assert [kind_of(reason) for reason in MARKED.values()] == ["conflict", "too_long", "damaged"]
    assert kind_of("field 'ts' should be a time, not 'it is missing'") == "wrong_type"
