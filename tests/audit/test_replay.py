"""A row is followed through epochs and generations, and the last step is today's answer."""

from __future__ import annotations

from headrace.api.resources.rows import ReplayRequest
from headrace.audit.trace import Replay
from headrace.core.shedding import Shedding
from headrace.run.offline import Offline

from .traced import Traced, event


def steps(replay: Replay) -> list[tuple[str, int, int, int | None]]:
    """What happened, with how many events of the row, and the count after it."""
    return [(s.what, s.number, s.events, s.row["n"] if s.row else None) for s in replay.steps]


def test_each_epoch_that_touched_the_row_is_a_step(traced: Traced, offline: Offline) -> None:
    traced.send(event("/a", 1))
    traced.epoch()
    traced.send(event("/b", 1))
    traced.epoch()
    traced.send(event("/a", 2), event("/a", 3), partition=1)
    traced.epoch()
    replay = offline.ask(ReplayRequest("slow", {"page": "/a"}))
    assert steps(replay) == [("epoch", 1, 1, 1), ("epoch", 3, 2, 3)]
    assert [(step.position, step.boundary) for step in replay.steps] == [
        ([1, 0], [0, 0]),
        ([2, 2], [0, 0]),
    ]
    assert replay.steps[-1].row == replay.row
    assert replay.steps[0].at < replay.steps[1].at
    assert (replay.agrees, replay.earlier) == (True, 0)


def test_a_generation_takes_over_what_speed_had(traced: Traced, offline: Offline) -> None:
    traced.send(event("/a", 1), event("/a", 2))
    traced.epoch()
    traced.generation()
    traced.send(event("/a", 3))
    traced.epoch()
    replay = offline.ask(ReplayRequest("slow", {"page": "/a"}))
    assert steps(replay) == [("epoch", 1, 2, 2), ("generation", 2, 2, 2), ("epoch", 2, 1, 3)]
    assert [step.boundary for step in replay.steps] == [[0, 0], [2, 0], [2, 0]]


def test_what_came_by_batch_alone_is_a_step_of_its_generation(
    traced: Traced, offline: Offline
) -> None:
    traced.send(event("/a", 1), event("/a", 2))
    traced.generation()
    traced.send(event("/b", 2))
    traced.generation()
    assert steps(offline.ask(ReplayRequest("slow", {"page": "/a"}))) == [("generation", 2, 2, 2)]


def test_late_events_are_marked_in_their_step(traced: Traced, offline: Offline) -> None:
    traced.send(event("/a", 50))
    traced.epoch()
    traced.send(event("/a", 1))
    traced.epoch()
    assert [step.late for step in offline.ask(ReplayRequest("slow", {"page": "/a"})).steps] == [
        0,
        1,
    ]


def test_what_was_passed_over_comes_back_with_the_generation(
    traced: Traced, offline: Offline
) -> None:
    traced.send(*(event("/a", n) for n in range(8)))
    traced.epoch(Shedding("oldest", 0.25))
    traced.send(event("/a", 9))
    traced.epoch()
    traced.generation()
    replay = offline.ask(ReplayRequest("slow", {"page": "/a"}))
    assert steps(replay) == [("epoch", 1, 8, 2), ("epoch", 2, 1, 3), ("generation", 2, 9, 9)]
    assert [step.shed for step in replay.steps] == [6, 0, 6]
    assert replay.agrees


def test_a_row_that_having_hid_appears_when_it_does(traced: Traced, offline: Offline) -> None:
    for second in (1, 2):
        traced.send(event("/a", second))
        traced.epoch()
    assert steps(offline.ask(ReplayRequest("often", {"page": "/a"}))) == [
        ("epoch", 1, 1, None),
        ("epoch", 2, 1, 2),
    ]


def test_only_the_newest_steps_are_told_and_the_others_counted(
    traced: Traced, offline: Offline
) -> None:
    for second in range(5):
        traced.send(event("/a", second))
        traced.epoch()
    replay = offline.ask(ReplayRequest("total", limit=2))
    assert (steps(replay), replay.earlier) == ([("epoch", 4, 1, 4), ("epoch", 5, 1, 5)], 3)


def test_a_row_that_never_was_has_no_steps(traced: Traced, offline: Offline) -> None:
    replay = offline.ask(ReplayRequest("often", {"page": "/z"}))
    assert (replay.row, replay.steps, replay.agrees) == (None, [], True)
