"""What is the same has the same hash, after a restart too, and what differs differs."""

from __future__ import annotations

from itertools import combinations

from headrace.ingest.fields import Value
from headrace.ingest.hashing import hash_records

KEY = "0123456789abcdef"
DIFFERENT: list[Value] = ["1", 1, b"1.0", "1.0", "", "a", "\0", "\ud800", 10**40, -1, "é", b"true"]


def hash_of(identity: Value, key: str = KEY) -> int:
    return int(hash_records([identity], [b""], key).ids[0])


def test_ids_of_any_kind_differ_and_do_not_depend_on_their_neighbours() -> None:
    for one, other in combinations(DIFFERENT, 2):
        assert hash_of(one) != hash_of(other)
        together = hash_records([one, other], [b"", b""], KEY).ids.tolist()
        assert together == [hash_of(one), hash_of(other)]


def test_the_hash_is_for_ever_and_depends_on_the_key() -> None:
    assert hash_of("a") == 5_941_279_374_467_348_348
    assert hash_of("a", KEY[::-1]) != hash_of("a")


def test_records_without_an_id_are_left_out() -> None:
    found = hash_records([None, "a", None], [b"x", b"y", b"z"], KEY)
    assert (found.size, list(found.places), len(found.bodies)) == (3, [1], 1)
    assert found.ids_at([0, 1]).tolist() == [hash_of("a")]
    assert found.ids_at([0]).tolist() == []
