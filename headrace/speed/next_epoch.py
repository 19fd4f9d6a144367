"""Which events the next epoch takes: a function of the store's state, the log's end and a limit.

An epoch takes the waiting events, up to its limit. A stream with load shedding skips to the log's
end when its lag is too large. If no event waits but an idle partition has let a watermark advance,
there is an epoch without events. tests/speed/test_next_epoch.py checks each case.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.core.position import Position, PositionRange
from headrace.core.shedding import Shedding, decide_shedding
from headrace.define.definitions import PaceDefinition
from headrace.serving.store import StreamState

FIRST_EVENTS = 10_000


@dataclass(frozen=True, slots=True)
class NextEpoch:
    """The range of an epoch, and which of its events are shed."""

    range: PositionRange
    shedding: Shedding | None = None


def next_epoch(
    state: StreamState,
    end: Position,
    pace: PaceDefinition,
    events_max: int,
    limit: int,
    now_us: int,
) -> NextEpoch | None:
    """The next epoch if the log ends at `end`; None if there is nothing to do. An epoch takes at
    most `limit` events; of a range that is shed, it takes a sample of at most `events_max`.
    """
    waiting = PositionRange(state.position, end.latest(state.position))
    if not len(waiting):
        return NextEpoch(waiting) if state.due(now_us) else None
    if (how := pace.sheds) and pace.lag_events_max:
        shedding = decide_shedding(waiting, how, pace.lag_events_max, events_max)
        if shedding:
            return NextEpoch(waiting, shedding)
    return NextEpoch(waiting.limited(limit))


def limit_after(taken: int, limit: int, events_max: int) -> int:
    """The limit of the epoch after one that took so many events under a limit: it doubles while
    epochs are full, so that the first answers after a start do not wait for the whole backlog.

    >>> limit_after(10_000, 10_000, 1_000_000), limit_after(300, 20_000, 1_000_000)
    (20000, 20000)
    """
    return min(2 * limit if taken >= limit else limit, events_max)
