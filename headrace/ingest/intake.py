"""The only way into a stream's log.

What is acknowledged is durable, and the status of each record (event, duplicate, conflict) is
decided once, in the order in which the records are appended, and written into the log with them. A
record that repeats an id is not acknowledged before the original is durable. If the original's
append fails, its id is forgotten before the failure is reported, and the request of the repetition
fails too: both producers send again, and the event is counted once. tests/ingest/test_intake.py and
tests/ingest/test_futures.py check this.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property, partial
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
from headrace.ingest.meter import IntakeMeter
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


@dataclass(frozen=True, slots=True)
class Counters:
    """What the log took since the start, acknowledged or not, so that it balances with the log."""

    accepted: int = 0
    duplicates: int = 0
    conflicts: int = 0


_Append = Callable[[bytearray], list["_Piece"]]  # with these statuses, by place


@dataclass(frozen=True, slots=True)
class _Piece:
    """The records of one request that go to one partition, in order, and their append."""

    partition: int
    statuses: bytes
    places: Sequence[int] | Places  # in the request
    appended: Future[Interval]

    @property
    def originals(self) -> list[int]:
        """Where the ids are that were first seen here; a repetition's id belongs to its original's
        piece.
        """
        pairs = zip(self.places, self.statuses, strict=True)
        return [place for place, status in pairs if status == EventStatus.EVENT]


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
        try:
            receipt = self._submit(records, marks)
        except HeadraceError:
            self._meter.refused(records)
            raise
        self._meter.follow(records, receipt)
        return receipt

    def _submit(self, records: Sequence[bytes], marks: bytes) -> Future[Receipt]:
        receipt: Future[Receipt] = running_future()
        if not records:
            receipt.set_result(Receipt(0))
            return receipt
        self._check_sizes(records)
        self.check_room(len(records))
        keys, ids = ([], []) if marks else self._fields(records)
        hashed = self._ids.hashed(ids, records) if ids else None
        words = marks or bytes(len(records))
        self._enter(hashed, words, partial(self._append, keys, records), receipt)
        return receipt

    def submit_part(self, part: ImportPart) -> Future[Receipt]:
        """Append records that an import has packed; `check_room` has been called."""
        receipt: Future[Receipt] = running_future()
        self._meter.follow_many(part.count, part.bytes, receipt)
        if not part.blocks:
            receipt.set_result(Receipt(0))
            return receipt
        append = partial(self._append_part, part)
        self._enter(part.hashes, bytes(part.size), append, receipt)
        return receipt

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
        self, hashed: RecordHashes | None, marks: bytes, append: _Append, receipt: Future[Receipt]
    ) -> None:
        """Decide and append; the receipt ends when all of it, and what it repeats, is durable."""
        durable: Future[None] = running_future()
        with self._order:
            decision = self._decide(hashed, marks, durable)
            pieces = append(decision.statuses)
        # From here on the log may call back at any time, and does so at once if it is done already.
        when_all_ended(
            [piece.appended for piece in pieces],
            lambda error: self._settle(decision, hashed, pieces, durable, error),
        )
        when_all_ended(
            [durable, *decision.waits_for],
            lambda error: (
                receipt.set_exception(error) if error else receipt.set_result(_receipt(pieces))
            ),
        )

    def _decide(
        self, hashed: RecordHashes | None, marks: bytes, durable: Future[None]
    ) -> DedupResult:
        if hashed is None:
            return DedupResult(0, bytearray(marks), ())
        with self._state:
            return self._ids.memory.decide(hashed, durable)

    def _append(
        self, keys: Sequence[Value], records: Sequence[bytes], statuses: bytearray
    ) -> list[_Piece]:
        pieces = []
        for partition, places in self._partitioner.share(keys, records):
            words = bytes([statuses[place] for place in places])
            try:
                appended = self._topic.append(partition, [records[p] for p in places], words)
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
            self._counters = _added(self._counters, _receipt(taken))
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


def _receipt(pieces: list[_Piece]) -> Receipt:
    spans = [(piece.partition, piece.appended.result()) for piece in pieces]
    return Receipt(
        accepted=sum(len(piece.statuses) for piece in pieces),
        duplicates=sum(piece.statuses.count(EventStatus.DUPLICATE) for piece in pieces),
        conflicts=sum(piece.statuses.count(EventStatus.DEAD_LETTER) for piece in pieces),
        offsets=tuple((partition, span.lower, span.upper) for partition, span in spans),
    )


def _added(counters: Counters, receipt: Receipt) -> Counters:
    return Counters(
        counters.accepted + receipt.accepted,
        counters.duplicates + receipt.duplicates,
        counters.conflicts + receipt.conflicts,
    )
