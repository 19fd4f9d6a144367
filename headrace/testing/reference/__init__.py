"""The reference interpreter: the specification of what a view's answer is.

Plain Python over lists of dicts, written to be read. It shares no code with the engine (an import
contract says so), so that agreeing with it means something. For all events and every view:
    engine.answer(view) == Reference(streams, tables, queries).answer(view, events),
however the engine cut the log into batch and speed. tests/transcripts/ plays transcripts against
it; tests/testing/ compares it with DuckDB.
"""

from headrace.testing.reference.interpreter import Reference, StreamWatermark
from headrace.testing.reference.processors import ReferenceProcessor
from headrace.testing.reference.values import (
    Date,
    Duration,
    LocalTimestamp,
    Timestamp,
    TimeWindow,
    Variant,
)

__all__ = [
    "Date",
    "Duration",
    "LocalTimestamp",
    "Reference",
    "ReferenceProcessor",
    "StreamWatermark",
    "TimeWindow",
    "Timestamp",
    "Variant",
]
