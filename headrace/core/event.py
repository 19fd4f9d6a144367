"""What the log keeps of an event beside its bytes.

`EventStatus` is decided once, when the event is appended, and is written into the log with it:
every reader, batch or speed, sees the same duplicates. Whether it can be decoded is a function of
its bytes and the stream's schema, so that readers agree on dead letters too.
tests/log/test_writer.py checks both.
"""

from __future__ import annotations

from enum import IntEnum

# The columns that Headrace adds to the declared ones; a definition may read them.
PARTITION, OFFSET, ARRIVED_AT, LATE, RAW = "_partition", "_offset", "_arrived_at", "_late", "_raw"
LATENESS = "_lateness"  # microseconds behind the watermark; 0 for an event that is on time
# Those that every step passes on with an event.
HIDDEN = (PARTITION, OFFSET, ARRIVED_AT, LATE, LATENESS)
STATUS, REASON = "_status", "_reason"
# What a carried step adds to an event: its key, event time and place in the order of its key, and
# which group of epochs it belongs to.
KEY, TIME, SEQ, CUT = "_key", "_time", "_seq", "_cut"
DATED = "_dated"  # the event time of a row that a pattern or threshold has made
# The columns of the row that ends a key.
STATE, TIMER, DISORDERED = "_state", "_timer", "_disordered"
# Beside `EventStatus`, and only within an epoch: of the events that speed sheds, the one whose time
# the watermark still needs.
SHED = 9
# Beside `EventStatus`, and only in the log: records of which a connector could read the beginning
# only. They are dead letters to every reader, whatever their bytes say.
OVERLONG, DAMAGED = 3, 4


class EventStatus(IntEnum):
    """The result of deduplication for an accepted event."""

    EVENT = 0
    DUPLICATE = 1
    DEAD_LETTER = 2

    @property
    def word(self) -> str:
        return self.name.lower()
