"""The first and the last value of a key, in the order of events: by event time, then by place.

Where the stream has no watermark the order is the place in the log alone. In a lift `_time` is the
event time in microseconds and `_seq` the place.
"""

from __future__ import annotations

from headrace.core.aggregate.model import (
    ANY,
    Aggregate,
    Lower,
    LoweredAggregate,
    Merge,
    ParameterValues,
    Partial,
    Types,
)
from headrace.core.storage import Storage


def _end(merge: Merge) -> Lower:
    """The value at one end of the order; the parts of one event, which an explode may have made,
    are ordered by their value.

    `min_by` takes the later of equals, so the first event's place is written with its sign
    turned.
    """
    order, sign = "struct(_time, _seq, {x:part})", "-" if merge is Merge.MIN_BY else ""
    lifts = (
        f"{merge}({{x:stored}}, {order}){{when}}",
        f"{merge.value[:3]}(_time){{when}}",
        f"{sign}{merge}(_seq, {order}){{when}}",
    )

    def lower(types: Types, said: ParameterValues) -> LoweredAggregate | None:
        storages = (Storage(types[0]).column, "INTEGER", "INTEGER")
        return LoweredAggregate((Partial(merge, lifts, storages),), "{0}", types[0])

    return lower


ROWS = (
    Aggregate("first", 1, ANY, _end(Merge.MIN_BY), needs=("_time",)),
    Aggregate("last", 1, ANY, _end(Merge.MAX_BY), needs=("_time",)),
)
