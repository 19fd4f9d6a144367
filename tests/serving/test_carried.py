"""States of carried views: what an epoch and a promotion leave, and when speed's rows fit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.compile.plan import CarryPlan, ViewPlan
from headrace.serving.carried import (
    commit_states,
    consistent_up_to,
    create_states,
    drop_states,
    needs_rebase,
    promote_states,
    read_states,
    stage_states,
)
from headrace.serving.database import Transaction
from headrace.serving.store import NOW, CarriedEpoch, StateRow

from .databases import open_database, table_names
from .marks import on_every_database

pytestmark = on_every_database

PLAN = ViewPlan("v", "carried", "", (), carry=CarryPlan("_carried_v", ""))


def state(key: str, time: int, text: bytes, timer: int | None = None) -> StateRow:
    return (key, time, 0, text, timer)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Transaction]:
    store = open_database(tmp_path / "serving.db")
    store.take_over()
    with store.write() as connection:
        create_states(connection, PLAN)
        yield connection
    store.close()


def texts(db: Transaction, *keys: str, due_us: int | None = None, **where: bool) -> set[bytes]:
    said = {"at_boundary": False} | where
    return {row[3] for row in read_states(db, PLAN, keys, due_us, **said)}


def promote(db: Transaction, *states: StateRow, group: int, ahead: bool) -> None:
    stage_states(db, PLAN, states)
    promote_states(db, PLAN, full=False, group=group, ahead=ahead)


def test_a_key_that_speed_has_not_met_has_the_generations_state(db: Transaction) -> None:
    promote(db, state("a", 1, b"old a"), state("b", 1, b"old b"), group=0, ahead=False)
    commit_states(db, PLAN, CarriedEpoch([state("a", 2, b"new a")]), group=1)
    assert texts(db, "a", "b", "c") == {b"new a", b"old b"}
    assert texts(db, "a", "b", at_boundary=True) == {b"old a", b"old b"}


def test_a_key_whose_timer_is_due_comes_unasked(db: Transaction) -> None:
    commit_states(db, PLAN, CarriedEpoch([state("a", 1, b"a", 5), state("b", 1, b"b", 9)]), group=1)
    assert texts(db, due_us=4) == set()
    assert texts(db, due_us=5) == {b"a"}


def test_a_rebased_epoch_replaces_what_speed_had(db: Transaction) -> None:
    commit_states(db, PLAN, CarriedEpoch([state("a", 1, b"a"), state("b", 1, b"b")]), group=1)
    commit_states(db, PLAN, CarriedEpoch([state("a", 2, b"again")], rebased=True), group=1)
    assert texts(db, "a", "b") == {b"again"}


def test_disorder_within_what_batch_takes_is_no_matter_any_more(db: Transaction) -> None:
    commit_states(db, PLAN, CarriedEpoch([], True, disorder=3), group=5)
    assert (needs_rebase(db, PLAN.recompute), consistent_up_to(db, PLAN.recompute, 2)) == (
        False,
        False,
    )
    assert consistent_up_to(db, PLAN.recompute, 3)
    promote(db, group=3, ahead=True)
    assert not needs_rebase(db, PLAN.recompute)


def test_disorder_after_the_boundary_makes_speeds_rows_unfit(db: Transaction) -> None:
    commit_states(db, PLAN, CarriedEpoch([], True, disorder=3), group=5)
    promote(db, group=2, ahead=True)
    assert needs_rebase(db, PLAN.recompute)
    commit_states(db, PLAN, CarriedEpoch([], rebased=True), group=5)
    assert not needs_rebase(db, PLAN.recompute)


def test_what_is_provisional_stays_so_until_speed_has_folded_again(db: Transaction) -> None:
    commit_states(db, PLAN, CarriedEpoch([], disorder=NOW, provisional=True), group=4)
    promote(db, group=4, ahead=True)
    assert needs_rebase(db, PLAN.recompute)


def test_a_boundary_at_speeds_own_position_leaves_nothing_open(db: Transaction) -> None:
    late = CarriedEpoch([state("a", 1, b"speed")], disorder=NOW, provisional=True)
    commit_states(db, PLAN, late, group=4)
    promote(db, state("a", 1, b"batch"), group=4, ahead=False)
    assert texts(db, "a") == {b"batch"}
    assert not needs_rebase(db, PLAN.recompute)


def test_a_full_build_forgets_keys_that_it_has_not_met(db: Transaction) -> None:
    promote(db, state("a", 1, b"a"), group=0, ahead=False)
    stage_states(db, PLAN, [state("b", 1, b"b")])
    promote_states(db, PLAN, full=True, group=1, ahead=False)
    assert texts(db, "a", "b") == {b"b"}


def test_a_dropped_version_leaves_no_state(db: Transaction) -> None:
    commit_states(db, PLAN, CarriedEpoch([state("a", 1, b"a")], disorder=NOW), group=1)
    drop_states(db, PLAN.name, PLAN.recompute)
    assert not [name for name in table_names(db) if name.startswith("_state")]
    assert consistent_up_to(db, PLAN.recompute, 0)
