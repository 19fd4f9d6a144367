"""The position is the progress: each epoch is added once, in order, and groups hold what batch may
take over.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from headrace.core.errors import EngineFailed
from headrace.core.position import Position
from headrace.core.time import SECOND
from headrace.serving import epochs
from headrace.serving.store import GroupState, Superseded

from .bench import CLICKS, KEPT, Bench, Click, alike
from .marks import on_every_database

pytestmark = on_every_database


def test_a_replayed_epoch_is_skipped(bench: Bench) -> None:
    bench.build()
    epoch = bench.epoch(*CLICKS[:4])
    assert bench.store.commit_epoch(epoch)
    state = bench.store.stream("clicks")
    bench.clock.now_us += SECOND
    assert not bench.store.commit_epoch(epoch)
    assert bench.store.stream("clicks") == state
    assert bench.rows("total")[0]["n"] == 4


def test_an_epoch_that_would_leave_a_gap_is_refused(bench: Bench) -> None:
    bench.build()
    bench.clicks.append(CLICKS[0])
    with pytest.raises(EngineFailed) as caught:
        bench.send(*CLICKS[1:3])
    assert caught.value.message == (
        "an epoch of stream 'clicks' starts at 1,0, but the store has committed up to 0,0"
    )
    assert bench.rows("total")[0]["n"] == 0


def test_an_epoch_that_begins_before_and_ends_after_the_position_is_refused(bench: Bench) -> None:
    bench.build()
    bench.send(CLICKS[0])
    longer = replace(bench.epoch(*CLICKS[1:3]), lower=Position((0, 0)))
    with pytest.raises(EngineFailed):
        bench.store.commit_epoch(longer)
    assert bench.store.stream("clicks").position == Position((1, 0))


def test_each_epoch_adds_to_what_is_there(bench: Bench) -> None:
    bench.build()
    for click in CLICKS:
        assert bench.send(click)
        for view in KEPT:
            assert alike(bench.rows(view)) == alike(bench.expected(view)), view


def test_an_epoch_without_rows_for_a_version_is_refused(bench: Bench) -> None:
    bench.build()
    epoch = bench.epoch(*CLICKS)
    kept = {v.id: v.name for v in bench.store.versions("clicks")}
    some = {id: rows for id, rows in epoch.rows.items() if kept[id] == "total"}
    with pytest.raises(Superseded, match="computed before these views were deployed: hits"):
        bench.store.commit_epoch(replace(epoch, rows=some))
    assert bench.rows("total")[0]["n"] == 0


def test_an_epoch_that_was_computed_beside_another_generation_is_refused(bench: Bench) -> None:
    bench.build()
    epoch = bench.epoch(*CLICKS)
    for generation in (epoch.generation - 1, epoch.generation + 1):
        with pytest.raises(Superseded, match=f"it was computed for generation {generation}"):
            bench.store.commit_epoch(replace(epoch, generation=generation))
    assert bench.rows("total")[0]["n"] == 0


def test_the_rows_of_a_version_that_is_gone_are_left_out(bench: Bench) -> None:
    bench.build()
    epoch = bench.epoch(*CLICKS)
    assert bench.store.commit_epoch(replace(epoch, rows=epoch.rows | {"gone": pa.table({})}))
    assert bench.rows("total")[0]["n"] == 8


@pytest.mark.parametrize(
    ("pauses_s", "groups"),
    [
        ([0, 3, 3, 3], [(1, "3,1")]),
        ([0, 9, 1, 0], [(1, "1,1"), (2, "3,1")]),
        ([0, 10, 10, 10], [(1, "1,0"), (2, "1,1"), (3, "2,1"), (4, "3,1")]),
    ],
)
def test_epochs_share_a_group_for_ten_seconds(
    bench: Bench, pauses_s: list[int], groups: list[tuple[int, str]]
) -> None:
    for pause, click in zip(pauses_s, CLICKS, strict=False):
        bench.clock.now_us += pause * SECOND
        bench.send(click)
    bench.store.close_group("clicks")
    closed = bench.store.closed_groups("clicks")
    assert [(group.number, str(group.reached.position)) for group in closed] == groups


def test_an_open_group_is_not_among_the_closed(bench: Bench) -> None:
    bench.send(CLICKS[0])
    assert bench.store.closed_groups("clicks") == []
    bench.store.close_group("clicks")
    first = bench.store.stream("clicks").reached
    bench.send(CLICKS[1])
    assert bench.store.closed_groups("clicks") == [GroupState(1, first)]


def test_numbers_of_groups_are_never_given_twice(bench: Bench) -> None:
    for number, click in enumerate(CLICKS[:3], 1):
        bench.send(click)
        bench.store.close_group("clicks")
        assert bench.store.closed_groups("clicks")[-1].number == number
        bench.build()


def test_a_keyed_row_of_null_is_one_row(bench: Bench) -> None:
    bench.build()
    bench.send(Click(None, "ann", 1))
    bench.send(Click(None, "bob", 2))
    assert bench.rows("users") == [{"page": None, "users": 2, "about": 2}]


def test_only_the_newest_epochs_are_kept(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epochs, "EPOCHS_KEPT", 3)
    for click in CLICKS:
        bench.send(click)
    with bench.store.read() as db:
        found = db.execute("SELECT number, lower, events FROM _epochs ORDER BY number").fetchall()
    assert found == [(6, "3,2", 1), (7, "3,3", 1), (8, "4,3", 1)]
