"""Deduplication by id: a producer may send an event again at any time.

The newest ids are in memory, about `ids_max` of them; all others are in the index, and only ids in
the index are evicted from memory. Ids are numbered by *slots* in the order in which they were first
seen. Each belongs to one *arrival* (the records of one request), and an arrival that is not durable
yet is *pending*: a request that repeats one of its ids waits for it, and fails if it fails. Only
the originals of an append that failed are forgotten, so that a second attempt counts once. An
arrival is *folded* when it and all before it have ended: its ids may go into the index, which then
goes as far as its offsets do. tests/ingest/test_dedup.py checks this.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np

from headrace.core.event import EventStatus
from headrace.core.position import Position
from headrace.ingest.hashing import Hashes, RecordHashes
from headrace.ingest.id_index import IdIndex

_FORGET_AT_ONCE = 256  # and as many as came, so that no request waits for many others
_TRIM_SLOTS = 65_536


@dataclass(frozen=True, slots=True)
class DedupResult:
    """The status of each record of one arrival, and the appends that it waits for."""

    arrival: int
    statuses: bytearray
    waits_for: tuple[Future[None], ...]


@dataclass(frozen=True, slots=True, eq=False)
class IdBatch:
    """Ids for the index: those of all events up to a position."""

    ids: Hashes
    bodies: Hashes
    position: Position
    after: int  # the slot after them


@dataclass(slots=True)
class _Arrival:
    """The slots `[first, after)` of an arrival's new ids; what its append gives, and what it gave:
    (partition, next_offset) of each part.
    """

    first: int
    after: int
    durable: Future[None] | None
    ends: Sequence[tuple[int, int]] | None = None


class RecentIds:
    """The ids of a stream's recent events. Not safe for threads: the intake holds a lock around
    it, and looks up in the index under the same lock.
    """

    def __init__(self, index: IdIndex, ids_max: int) -> None:
        self.index, self._ids_max = index, ids_max
        self._slots: dict[int, int] = {}
        # By slot, from `_base` on; numbers in arrays cost a tenth of what objects cost.
        self._ids, self._bodies, self._base = array("Q"), array("Q"), 0
        self._arrivals: dict[int, _Arrival] = {}  # those that are not folded yet
        self._arrivals_ever = self._folded = 0
        self._forgotten = self._indexed_slot = self._folded_slot = 0
        self._failed: set[int] = set()  # slots
        self._reached = list(index.position.offsets)

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def ready(self) -> int:
        """How many ids may go into the index."""
        return self._folded_slot - self._indexed_slot

    def decide(self, hashed: RecordHashes, durable: Future[None] | None) -> DedupResult:
        """Decide each record in order, and remember the new ids.

        `durable` is the future of these records' append; None if they are in the log already.
        """
        first = self._base + len(self._ids)
        old, bodies = self.index.look_up(hashed.ids)
        if old.any() or not self._remember_all(hashed, first):
            known = dict(zip(np.flatnonzero(old).tolist(), bodies[old].tolist(), strict=True))
            statuses, met = self._decide_each(hashed, known)
        else:
            statuses, met = bytearray(hashed.size), []
        return self._arrived(hashed, first, durable, statuses, self._waits_for(met))

    def decide_new(self, hashed: RecordHashes, durable: Future[None]) -> DedupResult | None:
        """As `decide`, if no record repeats an id; otherwise None, and nothing is remembered."""
        first = self._base + len(self._ids)
        old, _ = self.index.look_up(hashed.ids)
        if old.any() or not self._remember_all(hashed, first):
            return None
        return self._arrived(hashed, first, durable, bytearray(hashed.size), ())

    def _arrived(
        self,
        hashed: RecordHashes,
        first: int,
        durable: Future[None] | None,
        statuses: bytearray,
        waits_for: tuple[Future[None], ...],
    ) -> DedupResult:
        self._arrivals_ever += 1
        arrival = _Arrival(first, self._base + len(self._ids), durable)
        self._arrivals[self._arrivals_ever] = arrival
        self._forget(hashed.size + _FORGET_AT_ONCE)
        return DedupResult(self._arrivals_ever, statuses, waits_for)

    def _remember_all(self, hashed: RecordHashes, first: int) -> bool:
        """Remember ids that are all new, as nearly always; False if one is not."""
        ids = hashed.ids.tolist()
        if not self._slots.keys().isdisjoint(ids) or len(set(ids)) < len(ids):
            return False
        self._slots.update(zip(ids, range(first, first + len(ids)), strict=True))
        self._ids.frombytes(hashed.ids.tobytes())
        self._bodies.frombytes(hashed.bodies.tobytes())
        return True

    def _decide_each(
        self, hashed: RecordHashes, known: dict[int, int]
    ) -> tuple[bytearray, list[int]]:
        """The status of each record, and the slots that were met; `known` are the bodies of ids in
        the index, which are durable, so that no request waits for them.
        """
        slots, statuses, met = self._slots, bytearray(hashed.size), list[int]()
        found = zip(hashed.places, hashed.ids.tolist(), hashed.bodies.tolist(), strict=True)
        for index, (place, identity, body) in enumerate(found):
            original = known.get(index)
            if original is None:
                after = self._base + len(self._ids)
                slot = slots.setdefault(identity, after)
                if slot == after:
                    self._ids.append(identity)
                    self._bodies.append(body)
                    continue
                met.append(slot)
                original = self._bodies[slot - self._base]
            statuses[place] = EventStatus.DUPLICATE if original == body else EventStatus.DEAD_LETTER
        return statuses, met

    def _waits_for(self, met: list[int]) -> tuple[Future[None], ...]:
        return tuple(
            arrival.durable
            for arrival in self._arrivals.values()
            if arrival.durable is not None
            and arrival.ends is None
            and any(arrival.first <= slot < arrival.after for slot in met)
        )

    def settle(self, number: int, failed: Hashes, ends: Sequence[tuple[int, int]]) -> None:
        """The arrival's appends have ended; `failed` are the ids of originals not written, `ends`
        the offsets after those that were, by partition.
        """
        arrival = self._arrivals[number]
        for identity in failed.tolist():
            # An id may have been evicted and arrived again: then it belongs to a later arrival.
            slot = self._slots.get(identity, -1)
            if arrival.first <= slot < arrival.after:
                del self._slots[identity]
                self._failed.add(slot)
        arrival.ends = ends
        while (made := self._arrivals.get(self._folded + 1)) and made.ends is not None:
            self._fold(made)

    def _fold(self, arrival: _Arrival) -> None:
        for partition, end in arrival.ends or ():
            self._reached[partition] = max(self._reached[partition], end)
        self._folded += 1
        self._folded_slot = arrival.after
        del self._arrivals[self._folded]

    def next_batch(self) -> IdBatch:
        """The next batch for the index; its ids stay in memory until `mark_indexed`."""
        part = slice(self._indexed_slot - self._base, self._folded_slot - self._base)
        ids, bodies = (np.array(a[part], np.uint64) for a in (self._ids, self._bodies))
        if self._failed:
            failed = np.array(sorted(self._failed)) - self._indexed_slot
            written = ~np.isin(np.arange(len(ids)), failed)
            ids, bodies = ids[written], bodies[written]
        return IdBatch(ids, bodies, Position(tuple(self._reached)), self._folded_slot)

    def mark_indexed(self, ready: IdBatch) -> None:
        """The index has the batch."""
        self._indexed_slot = ready.after
        self._failed = {slot for slot in self._failed if slot >= ready.after}

    def _forget(self, most: int) -> None:
        """Evict some of the oldest ids that are in the index, while there are too many."""
        slots, ids, base = self._slots, self._ids, self._base
        above = min(most, len(slots) - self._ids_max, self._indexed_slot - self._forgotten)
        for slot in range(self._forgotten, self._forgotten + max(0, above)):
            identity = ids[slot - base]
            if slots.get(identity) == slot:
                del slots[identity]
        self._forgotten += max(0, above)
        if (gone := self._forgotten - base) >= _TRIM_SLOTS:
            del self._ids[:gone], self._bodies[:gone]
            self._base = self._forgotten


def no_hashes() -> Hashes:
    return np.empty(0, np.uint64)
