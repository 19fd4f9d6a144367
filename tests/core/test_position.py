"""The algebra of positions and ranges: every event is on exactly one side of every boundary."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.errors import BadQuery
from headrace.core.position import Interval, Position, PositionRange, parse_position

OFFSETS = st.integers(0, 1_000)


def positions(partitions: int) -> st.SearchStrategy[Position]:
    return st.tuples(*[OFFSETS] * partitions).map(Position)


def together(count: int) -> st.SearchStrategy[tuple[Position, ...]]:
    """Positions of one stream: they have as many partitions as each other."""
    return st.integers(1, 4).flatmap(lambda n: st.tuples(*[positions(n)] * count))


def events(range: PositionRange) -> set[tuple[int, int]]:
    """The (partition, offset) of each event in the range, from the definition of half-open."""
    pairs = zip(range.lower.offsets, range.upper.offsets, strict=True)
    return {
        (p, offset) for p, (lower, upper) in enumerate(pairs) for offset in _offsets(lower, upper)
    }


def _offsets(lower: int, upper: int) -> list[int]:
    return [offset for offset in range(1_001) if lower <= offset < upper]


@given(together(3))
def test_positions_are_partially_ordered(abc: tuple[Position, Position, Position]) -> None:
    a, b, c = abc
    assert a <= a
    assert not (a <= b and b <= a) or a == b
    assert not (a <= b and b <= c) or a <= c


@given(together(2))
def test_order_holds_in_every_partition(ab: tuple[Position, Position]) -> None:
    a, b = ab
    assert (a <= b) == all(x <= y for x, y in zip(a.offsets, b.offsets, strict=True))


@given(together(3))
def test_latest_is_the_least_position_above_both(abc: tuple[Position, Position, Position]) -> None:
    a, b, c = abc
    join, meet = a.latest(b), a.earliest(b)
    assert a <= join
    assert b <= join
    assert meet <= a
    assert meet <= b
    if a <= c and b <= c:
        assert join <= c
    if c <= a and c <= b:
        assert c <= meet
    assert (join, meet) == (b.latest(a), b.earliest(a))
    assert a.latest(meet) == a.earliest(join) == a


@given(together(2))
def test_difference_is_the_number_of_events_between(ab: tuple[Position, Position]) -> None:
    lower, upper = ab[0].earliest(ab[1]), ab[0].latest(ab[1])
    assert (
        upper - lower
        == len(PositionRange(lower, upper))
        == len(events(PositionRange(lower, upper)))
    )


@given(st.integers(1, 5).flatmap(positions))
def test_position_survives_as_text(position: Position) -> None:
    assert Position.parse(str(position)) == position


def test_start_takes_nothing_of_any_partition() -> None:
    assert Position.start(3) == Position((0, 0, 0))


@given(together(3))
def test_boundary_puts_every_event_on_exactly_one_side(
    abc: tuple[Position, Position, Position],
) -> None:
    lower, upper = abc[0].earliest(abc[1]), abc[0].latest(abc[1])
    boundary = abc[2].latest(lower).earliest(upper)
    before, after = PositionRange(lower, boundary), PositionRange(boundary, upper)
    assert events(before) | events(after) == events(PositionRange(lower, upper))
    assert not events(before) & events(after)


@given(together(2))
def test_intervals_are_the_partitions_that_have_events(ab: tuple[Position, Position]) -> None:
    range_ = PositionRange(ab[0].earliest(ab[1]), ab[0].latest(ab[1]))
    found = {(p, o) for p, i in range_.intervals() for o in range(i.lower, i.upper)}
    assert found == events(range_)
    assert all(len(interval) for _, interval in range_.intervals())


@given(together(2), st.integers(1, 500))
def test_limited_range_begins_where_the_whole_does_and_moves_on(
    ab: tuple[Position, Position], events_max: int
) -> None:
    whole = PositionRange(ab[0].earliest(ab[1]), ab[0].latest(ab[1]))
    limited = whole.limited(events_max)
    assert limited.lower == whole.lower
    assert limited.upper <= whole.upper
    # One event of each partition always goes, or a limit below their number would stop the log.
    busy = sum(1 for _ in whole.intervals())
    assert len(limited) <= max(events_max, busy)
    assert len(limited) > 0 or len(whole) == 0
    assert len(whole) > events_max or limited == whole


def test_limited_ranges_one_after_another_are_the_whole() -> None:
    lower, upper, seen = Position((0, 3)), Position((7, 4)), []
    while lower != upper:
        step = PositionRange(lower, upper).limited(3)
        seen += sorted(events(step))
        lower = step.upper
    assert sorted(seen) == sorted(events(PositionRange(Position((0, 3)), upper)))
    assert len(seen) == len(set(seen))


@given(together(2))
def test_half_of_a_range_is_a_beginning_of_it(ab: tuple[Position, Position]) -> None:
    whole = PositionRange(ab[0].earliest(ab[1]), ab[0].latest(ab[1]))
    half = whole.half()
    assert half.lower == whole.lower
    assert half.upper <= whole.upper
    assert len(half) == len(whole) // 2


@given(together(2))
def test_position_after_an_event_parts_a_range_that_is_read_in_order(
    ab: tuple[Position, Position],
) -> None:
    whole = PositionRange(ab[0].earliest(ab[1]), ab[0].latest(ab[1]))
    in_order = sorted(events(whole))
    for number in {0, len(in_order) // 2, len(in_order) - 1} if in_order else ():
        after = whole.after(*in_order[number])
        assert sorted(events(PositionRange(whole.lower, after))) == in_order[: number + 1]
        assert sorted(events(PositionRange(after, whole.upper))) == in_order[number + 1 :]


@pytest.mark.parametrize("text", ["", "3", "1,2,3", "1,-2", "1,x", " 1,2", "1,2,", "1," + "9" * 19])
def test_what_is_no_position_of_the_stream_gets_a_sentence(text: str) -> None:
    with pytest.raises(BadQuery) as refused:
        parse_position(text, "clicks", 2)
    assert refused.value.message == f"'{text}' is not a position of 'clicks'"
    assert refused.value.hint == (
        "write one offset for each of its 2 partitions, such as '120,98'."
    )
    assert parse_position("120,98", "clicks", 2) == Position((120, 98))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Interval(5, 2), "an interval cannot end before it begins: [5, 2)"),
        (
            lambda: PositionRange(Position((3, 9)), Position((4, 8))),
            "a range cannot end before it begins: 3,9 .. 4,8",
        ),
    ],
)
def test_what_ends_before_it_begins_is_refused(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        make()
    assert str(caught.value) == sentence


def test_positions_of_different_streams_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="zip"):
        assert Position((1,)) <= Position((1, 2))


@given(st.lists(OFFSETS, min_size=4, max_size=4))
def test_intervals_overlap_if_they_share_a_number(bounds: list[int]) -> None:
    one, other = Interval(*sorted(bounds[:2])), Interval(*sorted(bounds[2:]))
    shared = set(range(one.lower, one.upper)) & set(range(other.lower, other.upper))
    # An empty interval inside another shares nothing with it, and yet cannot be put beside it.
    if len(one) and len(other):
        assert one.overlaps(other) == other.overlaps(one) == bool(shared)
    assert one.meets(other) == (one.upper == other.lower)


@given(st.tuples(OFFSETS, OFFSETS, OFFSETS).map(sorted))
def test_split_interval_meets_in_the_middle(bounds: list[int]) -> None:
    lower, point, upper = bounds
    left, right = Interval(lower, upper).split_at(point)
    assert left.meets(right)
    assert (left.lower, right.upper) == (lower, upper)
    assert len(left) + len(right) == upper - lower
