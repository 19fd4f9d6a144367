"""The same key goes to the same partition for ever."""

from __future__ import annotations

import pytest

from headrace.ingest.fields import Value
from headrace.ingest.partitions import Partitioner, partition_of


# These numbers are in logs already: a change here breaks the order of every key in them.
@pytest.mark.parametrize(
    ("key", "partition"),
    [("ada", 8), ("bob", 0), ("ångström", 0), (17, 2), ("17", 2), (b"1.5", 26), ("", 0)],
)
def test_a_key_keeps_its_partition(key: Value, partition: int) -> None:
    assert partition_of(key, b"whatever", 32) == partition


def test_a_record_without_a_readable_key_goes_by_its_bytes() -> None:
    places = {partition_of(None, b"record %d" % n, 8) for n in range(100)}
    assert places == set(range(8))
    assert partition_of(None, b"record", 8) == partition_of(None, b"record", 8)


def test_records_of_a_partition_keep_their_order() -> None:
    keys = [f"user-{n % 7}" for n in range(100)]
    shares = Partitioner(4).share(keys, [b""] * 100)
    assert all(list(places) == sorted(places) for _, places in shares)
    assert sorted(place for _, places in shares for place in places) == list(range(100))


def test_without_keys_whole_requests_take_turns() -> None:
    partitioner = Partitioner(3)
    turns = [partitioner.share([], [b""] * 10) for _ in range(4)]
    assert turns == [[(0, range(10))], [(1, range(10))], [(2, range(10))], [(0, range(10))]]


def test_a_large_request_without_keys_is_spread_in_chunks() -> None:
    shares = Partitioner(2).share([], [b""] * 12_000)
    assert shares == [(0, range(5_000)), (1, range(5_000, 10_000)), (0, range(10_000, 12_000))]
