"""F10: what no decoder likes ends as a dead letter with its exact bytes, and hurts no neighbour."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable

import pytest

from headrace.core.event import EventStatus
from headrace.core.schema import Column, Schema, Type
from headrace.log.block import Block
from headrace.log.decode import Decoder

SCHEMA = Schema(
    (
        Column("user", Type("STRING"), nullable=False),
        Column("ms", Type("BIGINT")),
        Column("score", Type("DOUBLE")),
    )
)
DECODER = Decoder(SCHEMA)


def nested(depth: int) -> bytes:
    return b'{"user":"ada","x":' + b"[" * depth + b"]" * depth + b"}"


POISON = {
    "bad UTF-8": b'{"user":"\xff"}',
    "bad UTF-8 in a field not declared": b'{"user":"ada","x":"\xc3("}',
    "bad UTF-8 in a key": b'{"user":"ada","\x80":1}',
    "a surrogate in UTF-8": b'{"user":"\xed\xa0\x80"}',
    "a lone high surrogate": b'{"user":"\\ud800"}',
    "a lone low surrogate": b'{"user":"\\udc00 and more"}',
    "surrogates the wrong way round": b'{"user":"\\udc00\\ud800"}',
    "NaN": b'{"user":"ada","score":NaN}',
    "minus infinity": b'{"user":"ada","score":-Infinity}',
    "1e400": b'{"user":"ada","score":1e400}',
    "int64 overflow": b'{"user":"ada","ms":9223372036854775808}',
    "int64 underflow": b'{"user":"ada","ms":-9223372036854775809}',
    "ten thousand digits": b'{"user":"ada","ms":' + b"9" * 10_000 + b"}",
    "depth 10,000": nested(10_000),
    "depth 100,000 and cut off": b'{"user":"ada","x":' + b'[{"a":' * 50_000,
    "an array of depth 10,000": b"[" * 10_000,
    "a wrong type": b'{"user":["ada"]}',
    "null in NOT NULL": b'{"user":null}',
    "missing NOT NULL": b"{}",
    "an empty body": b"",
    "spaces only": b" \t ",
    "newlines only": b"\n\n\n",
    "two events in one": b'{"user":"a"}{"user":"b"}',
    "two events, two lines": b'{"user":"a"}\n{"user":"b"}',
    "a raw newline in a string": b'{"user":"a\nb"}',
    "a NUL": b'{"user":"a\x00b"}',
    "a byte order mark": b'\xef\xbb\xbf{"user":"ada"}',
    "UTF-16": '{"user":"ada"}'.encode("utf-16"),
    "gzip": gzip.compress(b'{"user":"ada"}'),
    "half of a gzip": gzip.compress(b'{"user":"ada"}' * 100)[:20],
    "one quote": b'"',
    "all bytes": bytes(range(256)),
}


@pytest.mark.parametrize("poison", POISON.values(), ids=POISON.keys())
def test_poison_is_a_dead_letter_and_its_neighbours_are_well(poison: bytes) -> None:
    records = [b'{"user":"before"}', poison, b'{"user":"after"}']
    table = DECODER.decode([Block.of(0, 0, records, bytes(3))], 0, None, raw=True).table
    assert table["user"].to_pylist() == ["before", None, "after"]
    assert table["_status"].to_pylist() == [
        EventStatus.EVENT,
        EventStatus.DEAD_LETTER,
        EventStatus.EVENT,
    ]
    assert table["_raw"].to_pylist() == records
    (reason,) = filter(None, table["_reason"].to_pylist())
    assert 5 < len(reason) < 200


def test_duplicate_keys_are_not_poison_and_the_last_counts() -> None:
    records = [b'{"user":"a","user":"b"}', b'{"user":null,"user":"c"}']
    table = DECODER.decode([Block.of(0, 0, records, bytes(2))], 0, None, raw=False).table
    assert table["user"].to_pylist() == ["b", None]
    assert table["_reason"].to_pylist() == [None, "field 'user' must not be null"]


def deep_in_the_stack(levels: int, work: Callable[[], object]) -> object:
    return deep_in_the_stack(levels - 1, work) if levels else work()


@pytest.mark.parametrize("depth", [100, 126, 127, 128, 129, 200, 400, 900, 5_000])
def test_nesting_is_judged_the_same_however_deep_the_caller_is(depth: int) -> None:
    def status() -> object:
        block = Block.of(0, 0, [nested(depth)], bytes(1))
        return DECODER.decode([block], 0, None, raw=False).table["_status"][0].as_py()

    expected = EventStatus.EVENT if depth + 1 <= 128 else EventStatus.DEAD_LETTER
    assert status() == expected
    frames = len(_stack())
    room = sys.getrecursionlimit() - frames - 350
    assert deep_in_the_stack(room, status) == expected


def _stack() -> list[object]:
    frame, found = sys._getframe(), []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back  # type: ignore[assignment]
    return found


def test_brackets_in_strings_are_not_depth() -> None:
    record = json.dumps({"user": "[{" * 5_000 + '\\"'}).encode()
    table = DECODER.decode([Block.of(0, 0, [record], bytes(1))], 0, None, raw=False).table
    assert table["_status"].to_pylist() == [EventStatus.EVENT]
