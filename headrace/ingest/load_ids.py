"""Loads the ids of all events at a start: the index goes up to a position, and later ids are read
from the log, and from the master where retention has removed them.

Only events count. A duplicate whose original never became durable must not replace it: the
original's producer got an error and sends it again. tests/ingest/test_load_ids.py checks a topic
that is opened again, with and without its index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import structlog

from headrace.core.address import LogAddress
from headrace.core.event import EventStatus
from headrace.core.position import Interval
from headrace.ingest.dedup import RecentIds, no_hashes
from headrace.ingest.fields import FieldReader
from headrace.ingest.hashing import hash_records
from headrace.log.block import Block
from headrace.log.opening import open_reader

_EVENT = int(EventStatus.EVENT)
_log = structlog.get_logger(__name__)

# (partition, offsets) -> the records there that are not duplicates, in batches with the offset
# after
Batch = tuple[Sequence[bytes], int]
History = Callable[[int, Interval], Iterator[Batch]]


def no_history(partition: int, interval: Interval) -> Iterator[Batch]:
    """Without a master, the log has all events."""
    yield from ()


def load_ids(
    memory: RecentIds, address: LogAddress, fields: FieldReader, history: History, most: int
) -> None:
    """Load the ids of all events that the index does not have; `most` are held at a time, if the
    disk has room for the others.
    """
    reader = open_reader(address)
    known, first, end = memory.index.position, reader.start(), reader.end()
    if (missing := end - known) > most:
        _log.info("ids are being read", log=str(address), records=missing)
    places = zip(known.offsets, first.offsets, end.offsets, strict=True)
    for partition, (reached, begins, ends) in enumerate(places):
        if reached < begins:
            archived = history(partition, Interval(reached, begins))
            _learn(memory, fields, partition, archived, most)
        tail = Interval(max(reached, begins), ends)
        _learn(memory, fields, partition, _logged(reader.blocks(partition, tail)), most)


def _logged(blocks: Iterable[Block]) -> Iterator[Batch]:
    for block in blocks:
        pairs = zip(block.records(), block.statuses.tobytes(), strict=True)
        yield [record for record, status in pairs if status == _EVENT], block.next_offset


def _learn(
    memory: RecentIds, fields: FieldReader, partition: int, batches: Iterable[Batch], most: int
) -> None:
    for records, after in batches:
        _, ids = fields(records)
        hashed = hash_records(ids, records, memory.index.key)
        decision = memory.decide(hashed, None)
        memory.settle(decision.arrival, no_hashes(), [(partition, after)])
        if memory.ready >= most:
            flush_ids(memory)


def flush_ids(memory: RecentIds) -> None:
    """Write what is ready to the index; no other thread may use `memory`. Without space on the disk
    the ids stay in memory, and what was not merged is merged later.
    """
    ready = memory.next_batch()
    try:
        memory.index.add(ready.ids, ready.bodies, ready.position)
        memory.mark_indexed(ready)
        memory.index.merge()
    except OSError as error:
        _log.warning("ids were not written", index=str(memory.index.folder), reason=str(error))
