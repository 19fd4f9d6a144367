"""The law of headrace/log/block.py: what was encoded is decoded, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.position import Interval
from headrace.log.block import (
    HEADER,
    Block,
    BlockError,
    PackedRecords,
    decode_block,
    encode_block,
    rest_bytes,
)

RECORDS = st.lists(st.binary(max_size=40) | st.sampled_from([b"", b"\n", b"a\nb"]), min_size=1)


def decoded(data: bytes, first_offset: int) -> Block:
    header = data[: HEADER.size]
    size = rest_bytes(header)
    return decode_block(header, data[HEADER.size : HEADER.size + size], first_offset)


@given(RECORDS, st.integers(0, 2**60), st.integers(0, 2**60), st.data())
def test_a_block_comes_back_as_it_was_written(
    records: list[bytes], first: int, arrived: int, data: st.DataObject
) -> None:
    count = len(records)
    statuses = data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    encoded = encode_block(first, arrived, PackedRecords.of(records), bytes(statuses))
    block = decoded(encoded, first)
    assert block.records() == records
    assert block.statuses.tolist() == statuses
    assert (block.first_offset, block.next_offset) == (first, first + len(records))
    assert (block.arrived_at_us, block.stored_bytes) == (arrived, len(encoded))
    assert block.framed == any(b"\n" in record for record in records)


@given(RECORDS, st.integers(0, 60), st.integers(0, 60))
def test_a_trimmed_block_holds_the_offsets_of_the_interval(
    records: list[bytes], one: int, other: int
) -> None:
    interval = Interval(min(one, other), max(one, other))
    block = Block.of(20, 0, records, bytes(len(records))).trimmed(interval)
    wanted = [r for i, r in enumerate(records, 20) if interval.lower <= i < interval.upper]
    assert block.records() == wanted
    assert block.count == len(wanted) == len(block.statuses)
    if wanted:
        assert block.first_offset == max(20, interval.lower)


def test_one_flipped_bit_anywhere_is_found() -> None:
    encoded = encode_block(5, 1, PackedRecords.of([b"first", b"", b"third\n"]), bytes(3))
    for at in range(len(encoded)):
        for bit in (1, 128):
            damaged = bytearray(encoded)
            damaged[at] ^= bit
            with pytest.raises(BlockError):
                decoded(bytes(damaged), 5)


def test_a_damaged_record_is_named_by_its_offset() -> None:
    encoded = encode_block(5, 1, PackedRecords.of([b"first", b"second", b"third"]), bytes(3))
    with pytest.raises(BlockError) as caught:
        decoded(encoded.replace(b"second", b"sEcond"), 5)
    assert caught.value.offsets == (6,)


def test_a_block_of_other_offsets_is_refused() -> None:
    with pytest.raises(BlockError, match="expected offset 6, got 5"):
        decoded(encode_block(5, 1, PackedRecords.of([b"a"]), bytes(1)), 6)
