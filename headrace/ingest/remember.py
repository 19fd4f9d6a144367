"""After a start the ids are remembered as before it: they are read from the log's tail.

Only events are remembered. A duplicate whose original never became durable must not stand for it:
the original's producer was told of the failure and sends it again.
tests/ingest/test_intake.py checks a topic that is opened again.
"""

from __future__ import annotations

import heapq
from pathlib import Path

from headrace.core.event import Status
from headrace.core.position import Interval
from headrace.ingest.dedup import IdMemory
from headrace.ingest.fields import FieldReader
from headrace.log.block import Block
from headrace.log.reader import TopicReader

_EVENT = int(Status.EVENT)


def remember_tail(
    memory: IdMemory, path: Path, fields: FieldReader, *, since_us: int, ids_max: int
) -> None:
    """Fill `memory` with the ids that arrived since then, in the order of their arrival."""
    reader = TopicReader(path)
    start, end = reader.position_at(since_us).offsets, reader.end().offsets
    # A partition cannot add more ids than are remembered in all, so no more of it is read.
    tails = [Interval(max(lo, hi - ids_max), hi) for lo, hi in zip(start, end, strict=True)]
    parts = [reader.blocks(partition, tail) for partition, tail in enumerate(tails)]
    for block in heapq.merge(*parts, key=lambda block: block.arrived_at_us):
        _remember(memory, block, fields, since_us)


def _remember(memory: IdMemory, block: Block, fields: FieldReader, since_us: int) -> None:
    if block.arrived_at_us < since_us:
        return
    pairs = zip(block.records(), block.statuses.tobytes(), strict=True)
    events = [record for record, status in pairs if status == _EVENT]
    _, ids = fields(events)
    memory.decide(ids, events, block.arrived_at_us, None)
