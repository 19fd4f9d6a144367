"""Full and incremental builds come to the same answer; nothing half built is ever read."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.core.position import Position
from headrace.serving import generations, staging
from headrace.serving.commits import record_changed
from headrace.serving.runs import Layer, count_runs, drop_rows
from headrace.serving.store import AuditResult, Superseded

from .bench import CLICKS, KEPT, VIEWS, Bench, Click, alike, definitions, plan_of
from .databases import table_names
from .marks import on_every_database

pytestmark = on_every_database

CUTS = [(2, 5), (0, 4), (4, 4), (7, 8)]


@pytest.mark.parametrize(("first", "second"), CUTS)
def test_full_and_incremental_builds_give_the_same(tmp_path: Path, first: int, second: int) -> None:
    whole, steps = Bench(tmp_path / "whole.db"), Bench(tmp_path / "steps.db")
    for start, end in ((0, first), (first, second), (second, len(CLICKS))):
        steps.send(*CLICKS[start:end])
        steps.build(full=False)
    whole.send(*CLICKS)
    whole.build(full=True)
    for view in (*KEPT, "pages"):
        assert alike(steps.rows(view)) == alike(whole.rows(view)), view
        assert alike(steps.rows(view)) == alike(steps.expected(view)), view
    whole.close()
    steps.close()


def test_a_build_of_all_takes_the_place_of_one_that_was_wrong(bench: Bench) -> None:
    bench.send(*CLICKS)
    bench.build()
    with bench.store.write() as db:
        for view in bench.store.versions("clicks"):
            drop_rows(db, view.plan.stored_name, Layer.GENERATION)
            record_changed(db, view.id, None)
    assert bench.rows("total") == []
    bench.build(full=True)
    for view in KEPT:
        assert alike(bench.rows(view)) == alike(bench.expected(view)), view


def test_a_build_on_an_older_generation_is_not_promoted(bench: Bench) -> None:
    before = bench.store.stream("clicks")
    bench.build()
    with pytest.raises(Superseded, match="built on generation 0, but the newest is 1"):
        bench.store.promote("clicks", before.generation, before.reached, 0, [], [])


def test_a_build_of_a_version_that_is_gone_is_not_promoted(bench: Bench) -> None:
    bench.send(*CLICKS)
    [hits] = [version for version in bench.store.versions("clicks") if version.name == "hits"]
    staged = bench.stage(hits, True, CLICKS)
    bench.store.deploy(plan_of(definitions({"total": VIEWS["total"]})))
    state = bench.store.stream("clicks")
    with pytest.raises(Superseded, match="were changed or removed while it ran: hits"):
        bench.store.promote("clicks", state.generation, state.reached, 1, [staged], [])


def test_a_build_without_speed_is_not_promoted_when_speed_has_moved_on(bench: Bench) -> None:
    bench.send(*CLICKS[:2])
    bench.store.close_group("clicks")
    state, archived = bench.store.stream("clicks"), bench.reached(CLICKS)
    version = next(v for v in bench.store.versions("clicks") if v.name == "total")
    staged = bench.stage(version, True, CLICKS)
    bench.send(*CLICKS[2:5])
    with pytest.raises(Superseded, match="up to 5,3 was discarded: the speed layer has committed"):
        bench.store.promote("clicks", state.generation, archived, 1, [staged], [])
    bench.clicks = list(CLICKS)
    bench.build()
    assert bench.rows("total") == bench.expected("total")


def test_a_value_counted_by_an_earlier_build_is_not_counted_again(bench: Bench) -> None:
    for second, user in enumerate(["ann", "bob", "ann", None, "ann", "cid"]):
        bench.send(Click("/a", user, second))
        bench.build(full=False)
    assert bench.rows("users") == [{"page": "/a", "users": 3, "about": 3}]
    assert bench.reader.view("users").columns["users"].exact


def test_many_distinct_values_are_counted_exactly_after_batch(bench: Bench) -> None:
    clicks = [Click("/a", f"user {n % 3000}", n) for n in range(4_000)]
    bench.build()
    bench.send(*clicks)
    fresh = bench.reader.view("users")
    assert not fresh.columns["users"].exact
    assert fresh.rows[0]["users"] == pytest.approx(3_000, rel=6 * 0.0163)
    assert fresh.rows[0]["users"] != 3_000, "an estimate of 3000 that is exact shows nothing"
    bench.build(full=False)
    assert bench.rows("users")[0]["users"] == 3_000


def test_the_runs_of_many_builds_become_one(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "RUNS_MAX", 1)
    bench.build()
    for click in (*CLICKS, Click("/a", "fay", 9), Click("/b", "ann", 9)):
        bench.send(click)
        bench.build(full=False)
        versions = bench.store.versions("clicks")
        with bench.store.read() as db:
            for version in versions:
                for layer in (Layer.GENERATION, Layer.VALUES):
                    assert count_runs(db, version.plan.stored_name, layer)[0] <= 2
        for view in KEPT:
            assert alike(bench.rows(view)) == alike(bench.expected(view)), view


def test_epochs_are_committed_while_a_build_is_merged(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.build()
    bench.send(*CLICKS[:4])
    prepare = staging.prepare

    def prepare_slowly(*arguments: Any) -> staging.PreparedBuild:
        if len(bench.clicks) == 4:
            bench.send(*CLICKS[4:])
        return prepare(*arguments)

    [total] = [version for version in bench.store.versions("clicks") if version.name == "total"]
    monkeypatch.setattr(staging, "prepare", prepare_slowly)
    bench.stage(total, False, CLICKS[:4])
    assert bench.rows("total") == bench.expected("total")
    bench.build(full=False)
    assert bench.rows("total") == bench.expected("total")


@pytest.mark.parametrize("view", ["total", "users"])
def test_a_build_that_was_merged_beside_a_promotion_is_not_staged(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, view: str
) -> None:
    bench.build()
    bench.send(*CLICKS)
    [version] = [version for version in bench.store.versions("clicks") if version.name == view]
    prepare = staging.prepare

    def prepare_slowly(*arguments: Any) -> staging.PreparedBuild:
        monkeypatch.undo()
        bench.build(full=False)
        return prepare(*arguments)

    monkeypatch.setattr(staging, "prepare", prepare_slowly)
    with pytest.raises(Superseded, match="built on generation 1, but the newest is 2"):
        bench.stage(version, False, CLICKS)
    with bench.store.read() as db:
        assert count_runs(db, version.plan.stored_name, Layer.STAGED) == (0, 0)
    assert alike(bench.rows(view)) == alike(bench.expected(view))


def test_a_build_that_was_merged_beside_a_redeploy_is_not_staged(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    [hits] = [version for version in bench.store.versions("clicks") if version.name == "hits"]
    prepare = staging.prepare

    def prepare_slowly(*arguments: Any) -> staging.PreparedBuild:
        bench.store.deploy(plan_of(definitions({"total": VIEWS["total"]})))
        return prepare(*arguments)

    monkeypatch.setattr(staging, "prepare", prepare_slowly)
    with pytest.raises(Superseded, match="were changed or removed while it ran: hits"):
        bench.stage(hits, True, CLICKS)
    with bench.store.read() as db:
        assert count_runs(db, hits.plan.stored_name, Layer.STAGED) == (0, 0)


def test_what_speed_held_is_taken_over_once(bench: Bench) -> None:
    bench.build()
    bench.send(*CLICKS[:5])
    bench.build(full=False)
    versions = bench.store.versions("clicks")
    with bench.store.read() as db:
        for version in versions:
            assert count_runs(db, version.plan.stored_name, Layer.SPEED) == (0, 0)
    assert bench.rows("total")[0]["n"] == 5


def test_rows_of_speed_after_the_boundary_stay(bench: Bench) -> None:
    bench.build()
    bench.send(*CLICKS[:3])
    early = bench.store.stream("clicks").reached
    bench.store.close_group("clicks")
    bench.send(*CLICKS[3:])
    version = next(v for v in bench.store.versions("clicks") if v.name == "total")
    staged = bench.stage(version, False, CLICKS[:3])
    bench.store.promote("clicks", 1, early, 1, [staged], [])
    assert bench.rows("total") == bench.expected("total")
    assert bench.store.stream("clicks").built == early
    assert bench.store.stream("clicks").position == Position((5, 3))


def test_batch_that_goes_past_speed_takes_speed_with_it(bench: Bench) -> None:
    bench.send(CLICKS[0])
    bench.clicks += CLICKS[1:]
    bench.build()
    state = bench.store.stream("clicks")
    assert state.position == state.boundary == Position((5, 3))
    assert state.reached.highs == bench.highs(CLICKS)
    assert bench.rows("total") == bench.expected("total")


def test_a_build_that_crashed_before_its_promotion_leaves_no_trace(bench: Bench) -> None:
    bench.send(*CLICKS[:4])
    bench.build()
    before = {view: bench.rows(view) for view in KEPT}
    for version in bench.store.versions("clicks"):
        wrong = [CLICKS[0]] * 9
        bench.stage(version, True, wrong)
    # The process is killed here: what it staged lies in the store when the next one opens it.
    again = Bench(bench.path)
    again.clicks = list(bench.clicks)
    assert {view: again.rows(view) for view in KEPT} == before
    again.send(*CLICKS[4:])
    again.build(full=False)
    for view in KEPT:
        assert alike(again.rows(view)) == alike(again.expected(view)), view
    with again.store.read() as db:
        names = table_names(db)
    assert not [name for name in names if "_staged" in name]
    again.close()


def test_a_promotion_that_fails_changes_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.send(*CLICKS)
    bench.build()
    bench.send(Click("/a", "zoe", 300))
    before, state = {v: bench.rows(v) for v in KEPT}, bench.store.stream("clicks")

    def broken(*_: object) -> None:
        raise OSError("no")

    monkeypatch.setattr(generations, "_drop_shed", broken)
    with pytest.raises(OSError, match="no"):
        bench.build(full=True)
    assert {v: bench.rows(v) for v in KEPT} == before
    assert bench.store.stream("clicks") == state


def test_an_audit_finds_nothing_where_batch_and_speed_agree(bench: Bench) -> None:
    first = bench.build(audit=True)
    assert {(audit.note, audit.changed) for audit in first} == {
        ("first generation of this version", None)
    }
    for full, end in ((False, 4), (True, 8)):
        bench.send(*CLICKS[end - 4 : end])
        audits = bench.build(full=full, audit=True)
        assert {audit.view for audit in audits} == set(KEPT)
        assert [audit for audit in audits if audit.differences] == []
        assert all(audit.compared for audit in audits)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize(
    ("built", "differences"),
    [
        (CLICKS[:4], {"hits": 0, "total": 0, "top": 0}),
        (CLICKS[:3], {"hits": 1, "total": 1, "top": 1}),
        ((*CLICKS[:4], CLICKS[0]), {"hits": 1, "total": 1, "top": 1}),
        ((*CLICKS[:4], Click("/new", "ann", 1)), {"hits": 1, "total": 1, "top": 1}),
    ],
    ids=["the same", "one lost", "one twice", "one invented"],
)
def test_an_audit_counts_what_batch_and_speed_say_differently(
    bench: Bench, full: bool, built: tuple[Click, ...], differences: dict[str, int]
) -> None:
    bench.build()
    bench.send(*CLICKS[:4])
    bench.store.close_group("clicks")
    found: dict[str, AuditResult] = {}
    for version in bench.store.versions("clicks"):
        if version.name in differences:
            staged = bench.stage(version, full, built)
            found[version.name] = bench.store.audit_staged(staged, 1)
    assert {name: audit.differences for name, audit in found.items()} == differences
    assert all(len(audit.examples) == audit.differences for audit in found.values())


def test_a_full_build_says_what_it_changes_though_that_is_no_defect(bench: Bench) -> None:
    bench.build()
    bench.send(*CLICKS[:4])
    bench.store.close_group("clicks")
    (version,) = (v for v in bench.store.versions("clicks") if v.name == "hits")
    found = {}
    for full in (True, False):
        staged = bench.stage(version, full, CLICKS[:3])
        found[full] = bench.store.audit_staged(staged, 1, "sampled")
    assert (found[True].differences, found[True].changed, found[True].note) == (0, 1, "sampled")
    assert (found[False].differences, found[False].changed) == (0, None)


def test_only_the_newest_generations_are_remembered(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generations, "GENERATIONS_KEPT", 2)
    for _ in range(4):
        bench.build()
    with bench.store.read() as db:
        assert db.execute("SELECT number FROM _generations").fetchall() == [(3,), (4,)]


def test_an_audit_of_many_keys_takes_no_longer_than_their_number(bench: Bench) -> None:
    """A comparison of each row with all others would take minutes."""
    bench.build()
    pages = 20_000
    bench.send(*(replace(CLICKS[0], page=f"p{n}") for n in range(pages)))
    began = time.process_time()
    audits = bench.build(full=False, audit=True)
    assert [audit.differences for audit in audits if audit.view == "users"] == [0]
    assert time.process_time() - began < 15
