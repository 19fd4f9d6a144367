"""The ids that a stream remembers, so that a producer may send an event again.

An id is remembered from its first arrival for `horizon_us`, and at most `ids_max` of them; the
oldest are forgotten first. Each id belongs to one *arrival* (the records of one request), and an
arrival that is not durable yet is *pending*: whoever meets one of its ids must wait for it, and
fails if it fails. Only the originals of an append that failed are forgotten, so that a second
attempt counts once.
tests/ingest/test_dedup.py checks this.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from headrace.core.event import Status
from headrace.ingest.fields import Value

_BITS = 64
_MASK = (1 << _BITS) - 1


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of each record of one arrival, and the arrivals that it now depends on."""

    arrival: int
    statuses: bytearray
    waits_for: tuple[Future[None], ...]


@dataclass(slots=True)
class _Arrival:
    number: int
    arrived_us: int
    ids_left: int


class IdMemory:
    """The ids of a stream's recent events. Not safe for threads: the intake holds a lock around it.

    >>> memory = IdMemory(horizon_us=60_000_000, ids_max=1000)
    >>> list(memory.decide(["a", "a", "a", None], [b"1", b"1", b"2", b"1"], 0, None).statuses)
    [0, 1, 2, 0]
    """

    def __init__(self, horizon_us: int, ids_max: int) -> None:
        self._horizon_us, self._ids_max = horizon_us, ids_max
        # An entry is one number: the arrival's, then 64 bits that stand for the record's bytes. At
        # a million ids a tuple each would cost as much again as the ids.
        self._entries: dict[Value, int] = {}
        # Deleting from a dict's front makes each look at the front slower, so the order is kept
        # apart.
        self._order: deque[Value] = deque()
        self._arrivals: deque[_Arrival] = deque()
        self._pending: dict[int, Future[None]] = {}
        self._arrivals_ever = 0

    def __len__(self) -> int:
        return len(self._entries)

    def decide(
        self,
        ids: Sequence[Value],
        records: Sequence[bytes],
        now_us: int,
        durable: Future[None] | None,
    ) -> Decision:
        """Decide each record in order, and remember the new ids.

        `durable` is the future of these records' append; None if they are in the log already.
        """
        self._forget_older(now_us)
        self._arrivals_ever += 1
        number = self._arrivals_ever
        statuses, fresh, met = self._look_up(ids, records, number)
        if fresh:
            self._order.extend(fresh)
            self._arrivals.append(_Arrival(number, now_us, len(fresh)))
        waits_for = tuple(self._pending[n] for n in sorted(met) if n in self._pending)
        if durable is not None:
            self._pending[number] = durable
        self._forget_above_limit()
        return Decision(number, statuses, waits_for)

    def _look_up(
        self, ids: Sequence[Value], records: Sequence[bytes], number: int
    ) -> tuple[bytearray, list[Value], set[int]]:
        entries, mark = self._entries, number << _BITS
        statuses, fresh, met = bytearray(len(records)), list[Value](), set[int]()
        for index, (identity, record) in enumerate(zip(ids, records, strict=True)):
            if identity is None:
                continue
            # Python's own hash of bytes is 64 bits, keyed anew in each process: nobody outside can
            # make a second body with the same one. The memory is rebuilt from bytes, so it need not
            # last.
            entry = mark | (hash(record) & _MASK)
            known = entries.setdefault(identity, entry)
            if known is entry:
                fresh.append(identity)
                continue
            same = (known ^ entry) & _MASK == 0
            statuses[index] = Status.DUPLICATE if same else Status.DEAD_LETTER
            met.add(known >> _BITS)
        return statuses, fresh, met

    def settle(self, arrival: int, failed: Iterable[Value]) -> None:
        """The arrival's appends have ended; `failed` are the ids of originals not written."""
        self._pending.pop(arrival, None)
        for identity in failed:
            self._drop(identity, arrival)

    def _forget_older(self, now_us: int) -> None:
        arrivals = self._arrivals
        while arrivals and arrivals[0].arrived_us < now_us - self._horizon_us:
            self._forget_first(arrivals[0].ids_left)

    def _forget_above_limit(self) -> None:
        while (above := len(self._entries) - self._ids_max) > 0:
            self._forget_first(min(above, self._arrivals[0].ids_left))

    def _forget_first(self, count: int) -> None:
        """Forget `count` ids of the oldest arrival, and the arrival with its last id."""
        oldest = self._arrivals[0]
        for _ in range(count):
            self._drop(self._order.popleft(), oldest.number)
        oldest.ids_left -= count
        if not oldest.ids_left:
            self._arrivals.popleft()

    def _drop(self, identity: Value, arrival: int) -> None:
        # An id may have been forgotten and come again: then it belongs to a later arrival.
        if self._entries.get(identity, 0) >> _BITS == arrival:
            del self._entries[identity]
