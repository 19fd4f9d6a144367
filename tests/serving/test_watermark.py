"""The watermark that is told: the slowest partition counts, a silent one does not for long."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.core.time import MINUTE, SECOND, from_iso, iso
from headrace.serving.watermark import EventTime, event_time

from .bench import CLICKS, Bench, Click

DELAY, IDLE = 10 * SECOND, MINUTE
ZERO = from_iso("2026-01-01T00:00:00Z")
HEARD = st.lists(
    st.tuples(st.none() | st.integers(0, 100), st.integers(0, 100)), min_size=1, max_size=5
)


def told(bench: Bench) -> EventTime:
    return bench.store.stream("clicks").event_time(bench.clock.now_us)


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
    bench.clock.now_us += 1
    assert told(bench) == EventTime(ZERO + 120 * SECOND, held_by=0, idle=((1, silent_since),))


def test_the_partition_that_was_heard_last_is_never_set_aside(bench: Bench) -> None:
    bench.send(Click("/a", "ann", 70))
    bench.clock.now_us += SECOND
    bench.send(Click("/a", "bob", 50, partition=1))
    bench.clock.now_us += 100 * IDLE
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


def test_what_somebody_was_told_between_two_commits_is_not_taken_back(bench: Bench) -> None:
    bench.send(Click("/a", "ann", 70), Click("/a", "bob", 50, partition=1))
    bench.clock.now_us += IDLE - SECOND
    bench.send(Click("/a", "ann", 200))
    bench.clock.now_us += 2 * SECOND
    between = told(bench).watermark_us
    assert between == ZERO + 190 * SECOND, "partition 1 has been silent for more than a minute"
    bench.send(Click("/a", "bob", 55, partition=1))
    assert told(bench) == EventTime(between, held_by=1)


def test_a_process_that_begins_has_waited_for_nobody_yet(bench: Bench) -> None:
    bench.send(Click("/a", "ann", 70), Click("/a", "bob", 50, partition=1))
    bench.clock.now_us += SECOND
    bench.send(Click("/a", "ann", 80))
    bench.clock.now_us += 100 * IDLE
    bench.store.take_over()
    assert told(bench) == EventTime(ZERO + 40 * SECOND, held_by=1)


def test_an_answer_carries_the_watermark_of_its_moment(bench: Bench) -> None:
    bench.build()
    bench.send(Click("/a", "ann", 70), Click("/a", "bob", 50, partition=1))
    assert bench.reader.view("total").as_of["clicks"].watermark == iso(ZERO + 40 * SECOND)
    bench.clock.now_us += SECOND
    bench.send(Click("/a", "ann", 90))
    bench.clock.now_us += IDLE
    assert bench.reader.view("total").as_of["clicks"].watermark == iso(ZERO + 80 * SECOND)


def test_silence_changes_no_answer(bench: Bench) -> None:
    bench.build()
    bench.send(*CLICKS)
    before = {view: bench.rows(view) for view in ("hits", "total")}
    bench.clock.now_us += 100 * IDLE
    assert {view: bench.rows(view) for view in ("hits", "total")} == before


@given(HEARD, st.integers(0, 100), st.integers(0, 200), st.integers(0, 200))
def test_with_time_alone_the_watermark_only_rises(
    heard: list[tuple[int | None, int]], idle_us: int, first: int, second: int
) -> None:
    highs, heard_at = zip(*heard, strict=True)

    def at(now_us: int) -> EventTime:
        return event_time(highs, heard_at, None, now_us, delay_us=10, idle_us=idle_us)

    early, later = at(min(first, second)), at(max(first, second))
    assert (early.watermark_us is None) == all(high is None for high in highs)
    assert (early.watermark_us or 0) <= (later.watermark_us or 0) or later.watermark_us is None
    assert set(early.idle) <= set(later.idle)
