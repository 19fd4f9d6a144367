"""Who is served, who waits, and who is dropped."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.core.fair_queue import FairQueue, FairQueueEntry


def enter(turns: FairQueue, *users: str) -> list[FairQueueEntry]:
    return [turns.enter(user, lambda: None) for user in users]


def states(entered: list[FairQueueEntry]) -> str:
    """The first letters: running, waiting, dropped, left."""
    return "".join(turn.state[0] for turn in entered)


def test_one_user_never_has_all_places() -> None:
    turns = FairQueue(most=3, share=2, waiting_max=10)
    assert states(enter(turns, "ada", "ada", "ada", "bob")) == "rrwr"


def test_a_place_goes_to_the_user_who_has_fewest_and_then_to_who_waits_longest() -> None:
    turns = FairQueue(most=2, share=2, waiting_max=10)
    entered = enter(turns, "ada", "ada", "ada", "ada", "bob", "eve", "bob")
    assert states(entered) == "rrwwwww"
    turns.leave(entered[0])
    assert states(entered) == "lrwwrww", "bob has none, and came before eve"
    turns.leave(entered[1])
    assert states(entered) == "llrwrww", "nobody has more than another, and ada came first"
    turns.leave(entered[2])
    assert states(entered) == "lllwrrw", "ada has had a turn since eve came"
    turns.leave(entered[5])
    assert states(entered) == "lllrrlw", "bob has one already"


def test_who_has_most_waiting_is_dropped_and_not_who_comes_last() -> None:
    turns = FairQueue(most=1, share=1, waiting_max=3)
    entered = enter(turns, "ada", "ada", "ada", "ada", "bob")
    assert states(entered) == "rwwdw"
    assert states(enter(turns, "eve")) == "w"
    assert states(entered) == "rwddw"
    assert states(enter(turns, "eve")) == "d", "all have one, so it is whoever asks for more"


def test_whoever_waits_may_leave() -> None:
    turns = FairQueue(most=1, share=1, waiting_max=3)
    entered = enter(turns, "ada", "bob", "eve")
    turns.leave(entered[1])
    turns.leave(entered[1])
    turns.leave(entered[0])
    assert states(entered) == "llr"
    assert (turns.running, turns.waiting) == (1, 0)


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=60),
    st.integers(1, 4), st.integers(1, 4), st.integers(0, 5),
)  # fmt: skip
def test_no_place_stays_free_that_somebody_could_have(
    steps: list[tuple[bool, int]], most: int, share: int, waiting_max: int
) -> None:
    turns, known, woken = FairQueue(most, share, waiting_max), list[FairQueueEntry](), list[int]()
    for enters, number in steps:
        if enters:
            known.append(turns.enter("abcd"[number], lambda: woken.append(1)))
        elif known:
            turns.leave(known.pop(number % len(known)))
        running = [turn.user for turn in known if turn.state == "running"]
        waiting = [turn.user for turn in known if turn.state == "waiting"]
        assert (turns.running, turns.waiting) == (len(running), len(waiting))
        assert len(running) <= most
        assert len(waiting) <= waiting_max
        assert all(running.count(user) <= share for user in running)
        assert len(running) == most or all(running.count(user) == share for user in waiting)
