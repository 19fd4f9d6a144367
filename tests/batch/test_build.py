"""Where a build may cut, and which versions it makes; the rows themselves are lifted by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from serving.bench import (
    CLICKS,
    KEPT,
    VIEWS,
    Bench,
    Click,
    after,
    alike,
    as_lifted,
    definitions,
    lifted,
    plan_of,
    values_of,
)
from tampered import change_rows

from headrace.batch.build import Builder, BuildResult
from headrace.compile.flow import FlowPlan
from headrace.core.address import LogAddress
from headrace.core.position import Position, PositionRange
from headrace.core.shedding import Shedding
from headrace.core.time import MINUTE, SECOND
from headrace.define.settings import BatchSettings
from headrace.serving.runs import Layer
from headrace.serving.store import StagedBuild, Version
from headrace.serving.watermark import FlowProgress, Times
from headrace.spark.feed import Feed

FILTERED = VIEWS | {"total": VIEWS["total"].replace("FROM clicks", "FROM clicks WHERE ms > 5")}


@dataclass
class Archived:
    """What a build asks of the master: how far it has come."""

    clicks: Sequence[Click]

    def newest(self) -> Archived:
        return self

    @property
    def position(self) -> Position:
        return Position(tuple(map(len, self._times())))

    @property
    def highs(self) -> Times:
        return tuple(max(times, default=None) for times in self._times())

    def _times(self) -> list[list[int]]:
        return [[click.at_us for click in self.clicks if click.partition == n] for n in (0, 1)]


class HandBuilder(Builder):
    """A builder whose engines are `lifted`; it records which views the kernel has built."""

    def __init__(self, *parts: Any, **more: Any) -> None:
        super().__init__(*parts, **more)
        self.by_kernel: set[str] = set()

    def _stage_by_kernel(
        self, versions: Sequence[Version], range: PositionRange, *, full: bool
    ) -> list[StagedBuild]:
        self.by_kernel |= {version.name for version in versions}
        ends = [FlowProgress(end, (None,) * 2, (None,)) for end in (range.lower, range.upper)]
        return [self._stage(v, None if full else ends[0], ends[1]) for v in versions]

    def _stage(
        self, version: Version, before: FlowProgress | None, reached: FlowProgress
    ) -> StagedBuild:
        # Every cut of these tests is a prefix of CLICKS, so a range of them is a slice.
        lower, full = before.position if before else Position((0, 0)), before is None
        kept = after(self.feeds[0].table.clicks, list(lower.offsets))[: reached.position - lower]
        if "ms > 5" in version.plan.map_sql:
            kept = [click for click in kept if (click.ms or 0) > 5]
        rows = as_lifted(version.plan, lifted(version.name, kept))
        return self.store.stage(version, full, rows, values_of(version, kept))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "serving.db")
    yield made
    made.close()


def build(
    bench: Bench, archived: int, *, speed_runs: bool = False, full: str = ""
) -> BuildResult | None:
    return builder_of(bench, archived).build(
        speed_runs=speed_runs, full=frozenset({full} if full else ())
    )


def builder_of(bench: Bench, archived: int, **more: Any) -> HandBuilder:
    table = Archived(CLICKS[:archived])
    stream = bench.plan.stream("clicks")
    feed = Feed(stream, LogAddress.of_files(bench.path), table)  # type: ignore[arg-type]
    flow, clock = FlowPlan("clicks", (stream,)), bench.clock
    return HandBuilder(None, flow, (feed,), bench.store, clock=clock, **more)


def test_without_speed_a_build_goes_to_the_master_s_end(bench: Bench) -> None:
    made = build(bench, 8)
    assert made is not None
    assert (made.boundary, made.events, made.generation) == (Position((5, 3)), 8, 1)
    bench.clicks = list(CLICKS)
    for view in KEPT:
        assert alike(bench.rows(view)) == alike(bench.expected(view)), view


def test_no_news_makes_no_generation(bench: Bench) -> None:
    assert build(bench, 4) is not None
    assert build(bench, 4) is None
    assert bench.store.stream("clicks").generation == 1


def test_a_build_goes_on_from_the_boundary(bench: Bench) -> None:
    for archived in (3, 3, 6, 8):
        build(bench, archived)
    bench.clicks = list(CLICKS)
    for view in KEPT:
        assert alike(bench.rows(view)) == alike(bench.expected(view)), view
    assert bench.store.stream("clicks").generation == 3


@pytest.mark.parametrize(
    ("sent", "archived", "boundary"),
    [
        ([2, 4], 3, "1,1"),  # the second group is not archived whole
        ([2, 4], 4, "3,1"),
        ([2, 4], 8, "3,1"),  # nothing after the last group, which speed still holds
        ([4], 3, "0,0"),
    ],
)
def test_while_speed_runs_a_build_cuts_at_a_closed_group_that_is_archived(
    bench: Bench, sent: list[int], archived: int, boundary: str
) -> None:
    bench.build()
    start = 0
    for end in sent:
        bench.send(*CLICKS[start:end])
        bench.store.close_group("clicks")
        start = end
    build(bench, archived, speed_runs=True)
    assert str(bench.store.stream("clicks").boundary) == boundary
    assert bench.rows("total") == bench.expected("total")


def certified(bench: Bench) -> set[str]:
    return {v.name for v in bench.store.versions("clicks") if v.plan.kernel.sql}


def test_the_first_to_compute_events_takes_the_kernel_and_the_second_spark_sql(
    bench: Bench,
) -> None:
    first = builder_of(bench, 2)
    first.build(speed_runs=False)
    assert first.by_kernel == certified(bench) >= {"total", "hits"}
    bench.clicks = list(CLICKS[:2])
    bench.send(*CLICKS[2:4])
    bench.store.close_group("clicks")
    follows = builder_of(bench, 4)
    follows.build(speed_runs=True)
    assert follows.by_kernel == set(), "speed has answered for these events"
    passes = builder_of(bench, 6)
    passes.build(speed_runs=False)
    assert passes.by_kernel == certified(bench)
    again = builder_of(bench, 6)
    again.build(speed_runs=False, full=frozenset({"total"}))
    assert again.by_kernel == set(), "a rebuild is compared with what was served"


def test_a_changed_view_is_new_to_both_layers(bench: Bench) -> None:
    build(bench, 4)
    bench.store.deploy(plan_of(definitions(FILTERED)))
    builder = builder_of(bench, 4)
    builder.build(speed_runs=False)
    assert builder.by_kernel == {"total"}


@pytest.mark.parametrize(("events_max", "compared"), [(2, True), (1, False)])
def test_a_long_range_is_not_computed_again(bench: Bench, events_max: int, compared: bool) -> None:
    build(bench, 2)
    bench.clicks = list(CLICKS[:2])
    bench.send(*CLICKS[2:4])
    bench.store.close_group("clicks")
    settings = BatchSettings(compare_events_max=events_max)
    builder = builder_of(bench, 4, settings=settings)
    builder.build(speed_runs=True)
    assert (builder.by_kernel == set()) == compared


def test_a_setting_leaves_everything_to_spark_sql(bench: Bench) -> None:
    builder = builder_of(bench, 4, vectorised=False)
    builder.build(speed_runs=False)
    assert builder.by_kernel == set()


def test_an_open_group_is_not_taken_while_speed_runs(bench: Bench) -> None:
    bench.build()
    bench.send(*CLICKS[:4])
    assert build(bench, 4, speed_runs=True) is None
    assert build(bench, 4, speed_runs=False) is not None
    assert bench.rows("total") == bench.expected("total")


@pytest.mark.parametrize("full", ["", "total"])
def test_what_silence_alone_has_brought_is_built_too(bench: Bench, full: str) -> None:
    bench.build()
    bench.send(CLICKS[0])
    bench.clock.now_us += SECOND
    bench.send(CLICKS[1])
    bench.store.close_group("clicks")
    build(bench, 2, speed_runs=True)
    bench.clock.now_us += 2 * MINUTE
    assert bench.send()
    bench.store.close_group("clicks")
    before, made = bench.store.stream("clicks"), build(bench, 2, speed_runs=True, full=full)
    assert made is not None
    assert {audit.view for audit in made.audits} == set(KEPT), "all views come to the new watermark"
    assert bench.store.stream("clicks").built == before.reached
    assert build(bench, 2, speed_runs=True) is None


def test_a_stream_that_has_fallen_silent_is_built_to_its_end(bench: Bench) -> None:
    bench.build()
    bench.send(*CLICKS[:4])
    bench.store.group_us = 0
    made = build(bench, 4, speed_runs=True)
    assert made is not None
    assert made.boundary == bench.store.stream("clicks").position


def test_a_view_asked_for_is_built_from_the_beginning_without_news(bench: Bench) -> None:
    build(bench, 4)
    (total,) = [v.plan for v in bench.store.versions("clicks") if v.name == "total"]
    change_rows(bench.store, total, Layer.GENERATION, "UPDATE rows SET p0 = 77")
    assert bench.rows("total")[0]["n"] == 77
    made = build(bench, 4, full="total")
    assert made is not None
    assert bench.rows("total")[0]["n"] == 4
    assert [(audit.view, audit.differences) for audit in made.audits] == [("total", 1)]


def test_a_changed_view_is_built_from_the_beginning_also_when_there_is_news(bench: Bench) -> None:
    build(bench, 4)
    bench.store.deploy(plan_of(definitions(FILTERED)))
    made = build(bench, 8)
    assert made is not None
    assert bench.rows("total") == [{"n": 4, "slowest": 99, "last": "2026-01-01T00:02:10Z"}]
    assert sum(row["n"] for row in bench.rows("hits")) == 8
    assert {version.state for version in bench.store.versions("clicks")} == {"live"}


def test_a_changed_view_waits_until_batch_has_come_to_where_it_began(bench: Bench) -> None:
    bench.build()
    bench.send(*CLICKS[:4])
    bench.store.deploy(plan_of(definitions(FILTERED)))
    assert build(bench, 2, speed_runs=True) is None
    assert bench.rows("total")[0]["n"] == 4
    assert build(bench, 4, speed_runs=True) is not None
    assert bench.rows("total")[0]["n"] == 2


def test_what_speed_has_shed_is_no_difference(bench: Bench) -> None:
    bench.build()
    epoch = bench.epoch(*CLICKS[:4])
    rows = {
        v.id: as_lifted(v.plan, lifted(v.name, CLICKS[:1])) for v in bench.store.versions("clicks")
    }
    shedding, counts = Shedding("random", 0.25), epoch.counts | {"events": 1}
    bench.store.commit_epoch(replace(epoch, rows=rows, counts=counts, shedding=shedding))
    bench.store.close_group("clicks")
    made = build(bench, 4, speed_runs=True)
    assert made is not None
    assert {(audit.differences, audit.note) for audit in made.audits} == {
        (0, "sampled: speed had shed 3 of these events")
    }
    bench.clicks = list(CLICKS[:4])
    assert bench.rows("total") == bench.expected("total")
    bench.send(*CLICKS[4:6])
    bench.store.close_group("clicks")
    again = build(bench, 6, speed_runs=True)
    assert again is not None
    assert {(audit.differences, audit.note) for audit in again.audits} == {(0, "")}
