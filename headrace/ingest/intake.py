"""The only way into a stream's log.

What is acknowledged is durable, and the status of each record (event, duplicate, conflict) is
decided once, in the order in which the records are appended, and written into the log with them. A
record that repeats an id is not acknowledged before the original is durable. If the original's
append fails, its id is forgotten before the failure is reported, and the request of the repetition
fails too: both producers send again, and the event is counted once. Requests that are submitted
together are one append, and each has its own outcome. tests/ingest/test_intake.py and
tests/ingest/test_futures.py check this.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate, chain, pairwise
from pathlib import Path

import numpy as np

from headrace.core.address import LogAddress
from headrace.core.errors import HeadraceError, LimitReached
from headrace.core.event import EventStatus
from headrace.core.position import Interval, Position
from headrace.core.time import Clock, now_us
from headrace.define.definitions import StreamDefinition
from headrace.define.settings import Settings
from headrace.ingest.dedup import DedupResult
from headrace.ingest.fields import Value, field_reader
from headrace.ingest.file_cursors import FileCursors
from headrace.ingest.futures import failed_future, running_future, when_all_ended
from headrace.ingest.guards import DiskGuard, LagGuard
from headrace.ingest.hashing import RecordHashes
from headrace.ingest.import_part import ImportPart, Places
from headrace.ingest.load_ids import History, no_history
from headrace.ingest.meter import IntakeMeter, RequestSize, size_of
from headrace.ingest.partitions import Partitioner
from headrace.ingest.stream_ids import StreamIds
from headrace.log.protocol import LogWriter


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the log took of one request; `offsets` are (partition, first_offset, next_offset)."""

    accepted: int  # all records, the duplicates and conflicts among them included
    duplicates: int = 0
    conflicts: int = 0
    offsets: tuple[tuple[int, int, int], ...] = ()


Outcome = Receipt | BaseException  # of one request: what the log took, or why it took nothing
Requests = Sequence[Sequence[bytes]]


@dataclass(frozen=True, slots=True)
class Counters:
    """What the log took since the start, acknowledged or not, so that it balances with the log."""

    accepted: int = 0
    duplicates: int = 0
    conflicts: int = 0


_Append = Callable[[bytearray], list["_Piece"]]  # with these statuses, by place


@dataclass(frozen=True, slots=True)
class _Piece:
    """The records of a batch that go to one partition, in order."""

    partition: int
    statuses: bytes
    places: Sequence[int] | Places  # in the batch, ascending
    appended: Future[Interval]

    @property
    def originals(self) -> list[int]:
        """Where the ids are that were first seen here; a repetition's id belongs to its original's
        piece.
        """
        pairs = zip(self.places, self.statuses, strict=True)
        return [place for place, status in pairs if status == EventStatus.EVENT]


@dataclass(frozen=True, slots=True)
class _Batch:
    """Records that are decided and appended together, in places of the batch; those of a request
    are in the places `[first, after)` of its bounds.
    """

    hashed: RecordHashes | None
    marks: bytes
    append: _Append
    bounds: Sequence[tuple[int, int]]
    sizes: Sequence[RequestSize]


class Intake:
    """Takes records into one stream's topic.

    `accept` waits until they are durable; `submit` gives a future, for `asyncio.wrap_future`.
    """

    def __init__(
        self,
        definition: StreamDefinition,
        topic: LogWriter,
        *,
        settings: Settings,
        clock: Clock = now_us,
        lag: Callable[[], int] = lambda: 0,
        history: History = no_history,
        appended: Callable[[], None] = lambda: None,
    ) -> None:
        self.definition, self.settings = definition, settings
        self._topic, self._clock, self._appended = topic, clock, appended
        self._fields = field_reader(definition)
        self._partitioner = Partitioner(len(topic.end().offsets))
        self._disk = DiskGuard(topic.folder, settings.log.free_bytes_min, clock)
        # A stream that sheds is never slowed: it sheds instead.
        pace = definition.pace
        most = None if pace.sheds else pace.lag_events_max
        self._lag = LagGuard(definition.name, most, lag, clock)
        self._counters, self._meter = Counters(), IntakeMeter(definition.name)
        # `_order` makes the order of decisions the order of appends. `_state` guards the memory and
        # the counters and is never held during an append, because the log's writer takes it to
        # report.
        self._order, self._state = threading.Lock(), threading.Lock()
        self._ids = StreamIds(definition, topic, self._fields, settings.dedup.ids_max, history)

    @property
    def counters(self) -> Counters:
        with self._state:
            return self._counters

    @property
    def folder(self) -> Path:
        """The folder of its log, for what must agree with it."""
        return self._topic.folder

    @property
    def address(self) -> LogAddress:
        return self._topic.address

    @cached_property
    def file_cursors(self) -> FileCursors:
        """How far the files of a connector and of imports were read."""
        return FileCursors(self._topic.folder, self._topic.end)

    def end(self) -> Position:
        """The position after the last acknowledged record."""
        return self._topic.end()

    def accept(self, records: Sequence[bytes], marks: bytes = b"") -> Receipt:
        """Append the records and wait until they are durable."""
        return self.submit(records, marks).result()

    def submit(self, records: Sequence[bytes], marks: bytes = b"") -> Future[Receipt]:
        """Append the records; the future ends when they, and all that they repeat, are durable.
        With marks, one each, they were not read whole: they get neither key nor id from their bytes
        and are dead letters.

        A request that can be refused at once raises instead: LimitReached, DiskFull, Overloaded.
        """
        if refusal := self._refusal(records):
            raise refusal
        receipt: Future[Receipt] = running_future()
        self._enter(self._batch([records], marks), partial(_resolve, receipt))
        return receipt

    def submit_all(self, requests: Requests) -> Future[list[Outcome]]:
        """Append the records of several requests as one; their outcomes are those that `submit`
        would have given or raised for each.
        """
        refusals = [self._refusal(records) for records in requests]
        taken = [records for records, no in zip(requests, refusals, strict=True) if no is None]
        ended: Future[list[Outcome]] = running_future()

        def end(outcomes: list[Outcome]) -> None:
            rest = iter(outcomes)
            ended.set_result([next(rest) if no is None else no for no in refusals])

        if not taken or not self._enter(self._batch(taken), end, repeats=len(taken) == 1):
            # What one of them repeats may not be durable yet: then only that one waits for it.
            self._enter_each(taken, end)
        return ended

    def submit_part(self, part: ImportPart) -> Future[Receipt]:
        """Append records that an import has packed; `check_room` has been called."""
        receipt: Future[Receipt] = running_future()
        append, sizes = partial(self._append_part, part), [(part.count, part.bytes)]
        batch = _Batch(part.hashes, bytes(part.size), append, [(0, part.size)], sizes)
        self._enter(batch, partial(_resolve, receipt))
        return receipt

    def _batch(self, requests: Requests, marks: bytes = b"") -> _Batch:
        records = requests[0] if len(requests) == 1 else list(chain.from_iterable(requests))
        keys, ids = ([], []) if marks else self._fields(records)
        return _Batch(
            hashed=self._ids.hashed(ids, records) if ids else None,
            marks=marks or bytes(len(records)),
            append=partial(self._append, keys, records),
            bounds=list(pairwise(accumulate(map(len, requests), initial=0))),
            sizes=list(map(size_of, requests)),
        )

    def _enter_each(self, requests: Requests, then: Callable[[list[Outcome]], None]) -> None:
        receipts: list[Future[Receipt]] = [running_future() for _ in requests]
        when_all_ended(receipts, lambda _: then([r.exception() or r.result() for r in receipts]))
        for records, receipt in zip(requests, receipts, strict=True):
            self._enter(self._batch([records]), partial(_resolve, receipt))

    def _refusal(self, records: Sequence[bytes]) -> HeadraceError | None:
        """Why a request is refused at once."""
        try:
            if records:
                self._check_sizes(records)
                self.check_room(len(records))
        except HeadraceError as error:
            self._meter.refused(records)
            return error
        return None

    def check_room(self, records: int) -> None:
        """Raise DiskFull or Overloaded if so many records cannot be accepted now."""
        self._disk.check()
        self._lag.check(records)

    def _check_sizes(self, records: Sequence[bytes]) -> None:
        limit = self.settings.log.event_bytes_max
        if max(map(len, records)) <= limit:
            return
        index = next(i for i, record in enumerate(records) if len(record) > limit)
        raise LimitReached(
            f"record {index + 1} of {len(records)} has {len(records[index])} bytes, "
            f"and the limit is {limit}",
            detail=f"nothing of this request to stream '{self.definition.name}' was accepted.",
            hint="send smaller events, or raise log.event_bytes_max in headrace.toml.",
        )

    def _enter(
        self, batch: _Batch, then: Callable[[list[Outcome]], None], repeats: bool = True
    ) -> bool:
        """Decide and append a batch; `then` gets the outcome of each of its requests. False if one
        repeats an id and `repeats` is not allowed: then nothing was done.
        """
        durable: Future[None] = running_future()
        hashed, bounds = batch.hashed, batch.bounds
        with self._order:
            decision = self._decide(hashed, batch.marks, durable, repeats)
            if decision is None:
                return False
            pieces = batch.append(decision.statuses)
        # Futures refer to each other in circles, which live on until they are collected. So what
        # waits here does not hold the records.
        count = self._meter.pending(batch.sizes)

        def end(error: BaseException | None) -> None:
            if error and len(bounds) == 1:  # its own, or that of a request whose id it repeats
                outcomes: list[Outcome] = [error]
            else:
                outcomes = [_outcome(pieces, first, after) for first, after in bounds]
            count(outcomes)
            then(outcomes)

        # From here on the log may call back at any time, and does so at once if it is done already.
        when_all_ended(
            [piece.appended for piece in pieces],
            lambda error: self._settle(decision, hashed, pieces, durable, error),
        )
        when_all_ended([durable, *decision.waits_for], end)
        return True

    def _decide(
        self, hashed: RecordHashes | None, marks: bytes, durable: Future[None], repeats: bool
    ) -> DedupResult | None:
        if hashed is None:
            return DedupResult(0, bytearray(marks), ())
        with self._state:
            memory = self._ids.memory
            return memory.decide(hashed, durable) if repeats else memory.decide_new(hashed, durable)

    def _append(
        self, keys: Sequence[Value], records: Sequence[bytes], statuses: bytearray
    ) -> list[_Piece]:
        pieces = []
        for partition, places in self._partitioner.share(keys, records):
            words, own = bytes(statuses), records
            if len(places) < len(records):
                words, own = bytes([statuses[p] for p in places]), [records[p] for p in places]
            try:
                appended = self._topic.append(partition, own, words)
            except Exception as error:
                # Records appended to other partitions stay: their ids are known, so a retry is
                # deduplicated.
                appended = failed_future(error)
            pieces.append(_Piece(partition, words, places, appended))
        return pieces

    def _append_part(self, part: ImportPart, statuses: bytearray) -> list[_Piece]:
        decided, pieces = np.frombuffer(statuses, np.uint8), []
        for block in part.blocks:
            # A record that was not read whole has no id, so only one of the two is not 0.
            words = (decided[block.places] | np.frombuffer(block.marks, np.uint8)).tobytes()
            try:
                appended = self._topic.append_packed(block.partition, block.packed, words)
            except Exception as error:
                appended = failed_future(error)
            pieces.append(_Piece(block.partition, words, block.places, appended))
        return pieces

    def _settle(
        self,
        decision: DedupResult,
        hashed: RecordHashes | None,
        pieces: list[_Piece],
        durable: Future[None],
        error: BaseException | None,
    ) -> None:
        """Forget the ids that failed, count the rest, and only then resolve the future."""
        taken = [piece for piece in pieces if not piece.appended.exception()]
        lost = [i for piece in pieces if piece.appended.exception() for i in piece.originals]
        with self._state:
            if hashed is not None:
                ends = [(piece.partition, piece.appended.result().upper) for piece in taken]
                self._ids.memory.settle(decision.arrival, hashed.ids_at(lost), ends)
            self._counters = _added(self._counters, taken)
        # Before the answer, so that `close` waits for what the last answered request has begun.
        self._ids.flush(self._state)
        self._appended()
        if error:
            durable.set_exception(error)
        else:
            durable.set_result(None)

    def close(self) -> None:
        """Wait for what is being written beside the log."""
        self._ids.close()


def _outcome(pieces: Sequence[_Piece], first: int, after: int) -> Outcome:
    """The outcome of the request with the records `[first, after)` of an append."""
    accepted = duplicates = conflicts = 0
    offsets = []
    for piece in pieces:
        begin = bisect_left(piece.places, first)
        end = bisect_left(piece.places, after, begin)
        if begin == end:
            continue
        if error := piece.appended.exception():
            return error
        accepted += end - begin
        duplicates += piece.statuses.count(EventStatus.DUPLICATE, begin, end)
        conflicts += piece.statuses.count(EventStatus.DEAD_LETTER, begin, end)
        start = piece.appended.result().lower
        offsets.append((piece.partition, start + begin, start + end))
    return Receipt(accepted, duplicates, conflicts, tuple(offsets))


def _resolve(receipt: Future[Receipt], outcomes: list[Outcome]) -> None:
    [outcome] = outcomes
    if isinstance(outcome, BaseException):
        receipt.set_exception(outcome)
    else:
        receipt.set_result(outcome)


def _added(counters: Counters, pieces: Sequence[_Piece]) -> Counters:
    """The counters with the records of these pieces, which are durable."""
    statuses = [piece.statuses for piece in pieces]
    return Counters(
        counters.accepted + sum(map(len, statuses)),
        counters.duplicates + sum(s.count(EventStatus.DUPLICATE) for s in statuses),
        counters.conflicts + sum(s.count(EventStatus.DEAD_LETTER) for s in statuses),
    )
