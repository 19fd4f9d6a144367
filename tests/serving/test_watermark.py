"""The watermark: the slowest partition counts, a silent one does not for long, and what an epoch
has decided stays.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.compile.flow import FlowPlan
from headrace.compile.plan import ColumnPlan, StreamPlan
from headrace.core.position import Position
from headrace.core.time import MINUTE, SECOND, from_iso, iso
from headrace.serving.store import StreamState
from headrace.serving.watermark import EventTime, FlowProgress, event_time

from .bench import CLICKS, Bench, Click

DELAY, IDLE = 10 * SECOND, MINUTE
ZERO = from_iso("2026-01-01T00:00:00Z")
HEARD = st.lists(
    st.tuples(st.none() | st.integers(0, 100), st.integers(0, 100)), min_size=1, max_size=5
)


def told(bench: Bench) -> EventTime:
    """The watermark that was told, and what holds it back now."""
    state = bench.store.stream("clicks")
    (time,) = state.event_times(bench.clock.now_us)
    return EventTime(state.reached.watermark_us, time.held_by, time.idle)


def due(bench: Bench) -> bool:
    return bench.store.stream("clicks").due(bench.clock.now_us)


def groups(bench: Bench) -> list[tuple[int, int | None]]:
    return [(g.number, g.reached.watermark_us) for g in bench.store.groups("clicks")]


def test_the_slowest_partition_holds_the_watermark_back(bench: Bench) -> None:
    assert told(bench) == EventTime()
    bench.send(Click("/a", "ann", 70), Click("/a", "bob", 50, partition=1))
    assert told(bench) == EventTime(ZERO + 40 * SECOND, held_by=1)


def test_a_partition_that_never_had_an_event_holds_nothing_back(bench: Bench) -> None:
    bench.send(Click("/a", "ann", 70))
    assert told(bench) == EventTime(ZERO + 60 * SECOND, held_by=0)


def test_a_partition_is_set_aside_after_its_time_of_silence_and_not_before(bench: Bench) -> None:
    bench.send(Click("/a", "ann", 70), Click("/a", "bob", 50, partition=1))
    silent_since = bench.clock.now_us
    bench.clock.now_us += IDLE
    bench.send(Click("/a", "ann", 130))
    assert told(bench) == EventTime(ZERO + 40 * SECOND, held_by=1)
    assert not due(bench)
    bench.clock.now_us += 1
    assert due(bench), "silence alone brings the watermark further"
    assert bench.send()
    assert told(bench) == EventTime(ZERO + 120 * SECOND, held_by=0, idle=((1, silent_since),))
    assert not due(bench)


def test_the_partition_that_was_heard_last_is_never_set_aside(bench: Bench) -> None:
    bench.send(Click("/a", "ann", 70))
    bench.clock.now_us += SECOND
    bench.send(Click("/a", "bob", 50, partition=1))
    bench.clock.now_us += 100 * IDLE
    assert not due(bench)
    assert told(bench).watermark_us == ZERO + 60 * SECOND, "what was told before is not taken back"
    assert (told(bench).held_by, [n for n, _ in told(bench).idle]) == (1, [0])


def test_a_partition_that_comes_back_holds_the_watermark_where_it_is_until_it_has_caught_up(
    bench: Bench,
) -> None:
    bench.send(Click("/a", "ann", 70), Click("/a", "bob", 50, partition=1))
    bench.clock.now_us += IDLE + 1
    bench.send(Click("/a", "ann", 300))
    assert told(bench).watermark_us == ZERO + 290 * SECOND
    bench.send(Click("/a", "bob", 60, partition=1), Click("/a", "ann", 400))
    assert told(bench) == EventTime(ZERO + 290 * SECOND, held_by=1)
    bench.send(Click("/a", "bob", 350, partition=1))
    assert told(bench) == EventTime(ZERO + 340 * SECOND, held_by=1)


def test_a_watermark_is_decided_by_an_epoch_and_stays_where_it_was_decided(bench: Bench) -> None:
    bench.build()
    bench.send(Click("/a", "ann", 70), Click("/a", "bob", 50, partition=1))
    bench.clock.now_us += IDLE - SECOND
    bench.send(Click("/a", "ann", 200))
    bench.clock.now_us += 2 * SECOND
    assert told(bench).watermark_us == ZERO + 40 * SECOND, "time alone tells nothing"
    bench.send(Click("/a", "bob", 55, partition=1))
    assert told(bench) == EventTime(ZERO + 45 * SECOND, held_by=1)
    assert groups(bench) == [(1, ZERO + 40 * SECOND), (2, ZERO + 45 * SECOND)]


def test_an_epoch_without_events_is_recognised_by_its_watermark(bench: Bench) -> None:
    bench.build()
    bench.send(Click("/a", "bob", 50, partition=1))
    bench.clock.now_us += SECOND
    bench.send(Click("/a", "ann", 70))
    bench.clock.now_us += IDLE
    silence = bench.epoch()
    assert len(silence.range) == 0
    assert bench.store.commit_epoch(silence)
    assert not bench.store.commit_epoch(silence), "it was noticed before"
    assert not bench.send(), "there is nothing more to notice"


def test_a_boundary_is_told_from_a_later_watermark_at_the_same_position(bench: Bench) -> None:
    bench.build()
    bench.send(Click("/a", "bob", 50, partition=1))
    bench.clock.now_us += SECOND
    bench.send(Click("/a", "ann", 70))
    bench.build()
    built = bench.store.stream("clicks").built
    bench.clock.now_us += IDLE
    bench.send()
    state = bench.store.stream("clicks")
    assert (state.built, state.reached.position) == (built, built.position)
    assert groups(bench) == [(2, ZERO + 60 * SECOND)]
    bench.build(full=False)
    assert bench.store.stream("clicks").built == state.reached
    assert groups(bench) == []


def test_a_process_that_begins_goes_on_with_the_silence_of_the_newest_epoch(bench: Bench) -> None:
    bench.send(Click("/a", "ann", 70), Click("/a", "bob", 50, partition=1))
    bench.clock.now_us += SECOND
    bench.send(Click("/a", "ann", 80))
    for _ in range(3):
        bench.clock.now_us += 100 * IDLE
        bench.store.take_over()
        assert told(bench) == EventTime(ZERO + 40 * SECOND, held_by=1)
    bench.clock.now_us += IDLE - SECOND
    assert not due(bench)
    bench.clock.now_us += 1
    assert due(bench)
    bench.send()
    bench.store.take_over()
    assert told(bench).idle == ((1, bench.clock.now_us - IDLE - 1),), "it is still set aside"


def test_an_answer_carries_the_watermark_of_its_epoch(bench: Bench) -> None:
    bench.build()
    bench.send(Click("/a", "ann", 70), Click("/a", "bob", 50, partition=1))
    assert bench.reader.view("total").as_of["clicks"].watermark == iso(ZERO + 40 * SECOND)
    bench.clock.now_us += SECOND
    bench.send(Click("/a", "ann", 90))
    bench.clock.now_us += IDLE
    assert bench.reader.view("total").as_of["clicks"].watermark == iso(ZERO + 40 * SECOND)
    bench.send()
    assert bench.reader.view("total").as_of["clicks"].watermark == iso(ZERO + 80 * SECOND)


def test_each_stream_of_a_flow_has_its_own_watermark_and_the_slowest_is_told() -> None:
    streams = tuple(
        StreamPlan(name, (ColumnPlan("ts", "TIMESTAMP", True),), "json", partitions, ("ts", 10))
        for name, partitions in (("a", 2), ("b", 1))
    )
    flow, start = FlowPlan("a+b", streams, joined=True), Position((0, 0, 0))
    nothing = FlowProgress(start, (None,) * 3, (None, None))
    state = StreamState(flow, nothing, nothing, 0, (None,) * 3, None, None)
    one = state.after(Position((1, 1, 0)), (100, 50, None), 1)
    assert (one.marks, one.watermark_us) == ((40, None), None)
    both = state.after(Position((1, 1, 1)), (100, 50, 45), 1)
    assert (both.marks, both.watermark_us) == ((40, 35), 35)


def test_silence_changes_no_answer(bench: Bench) -> None:
    bench.build()
    bench.send(*CLICKS)
    before = {view: bench.rows(view) for view in ("hits", "total")}
    bench.clock.now_us += 100 * IDLE
    bench.send()
    assert {view: bench.rows(view) for view in ("hits", "total")} == before


@given(HEARD, st.integers(0, 100), st.integers(0, 200), st.integers(0, 200))
def test_with_time_alone_the_watermark_only_rises(
    heard: list[tuple[int | None, int]], idle_us: int, first: int, second: int
) -> None:
    highs, received_at = zip(*heard, strict=True)

    def at(now_us: int) -> EventTime:
        return event_time(highs, received_at, None, now_us, delay_us=10, idle_us=idle_us)

    early, later = at(min(first, second)), at(max(first, second))
    assert (early.watermark_us is None) == all(high is None for high in highs)
    assert (early.watermark_us or 0) <= (later.watermark_us or 0) or later.watermark_us is None
    assert set(early.idle) <= set(later.idle)
