"""How a view is kept, in words; the plans are made by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.text import Text
from typer.testing import Result

from headrace.cli import planning
from headrace.compile.explain import _MERGES, QueryExplanation, explain
from headrace.compile.plan import (
    CarryPlan,
    DerivedPlan,
    KernelPlan,
    MatchPlan,
    ProcessorPlan,
    StepPlan,
    ViewPlan,
    digest,
)
from headrace.compile.windows import CountWindow, SessionWindow, SlidingWindow, WindowPlan
from headrace.core.aggregate import Merge
from headrace.core.errors import NotFound
from headrace.core.pattern import Threshold
from headrace.core.time import HOUR

from .plans import BUSIEST, PLAN, SINK, TOTALS, VISITORS


def test_an_explanation_at_a_terminal_is_broken_between_words(
    shop: Path, call: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "compile_plan", lambda project: PLAN)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    said = Text.from_ansi(call("explain", "visitors").stdout).plain
    assert said.split() == str(explain(PLAN, "visitors")).split()
    assert max(len(line) for line in said.splitlines()) <= 80


def test_a_mergeable_view_is_explained_in_four_sections() -> None:
    assert str(explain(PLAN, "VISITORS")) == (
        "visitors (shop.sql:14) is mergeable: batch and speed keep partials of it, which are "
        "merged when it is read.\n"
        f"fingerprint {VISITORS.fingerprint}, of its partials {VISITORS.recompute}\n"
        "\n"
        "map\n"
        "  each event of stream 'clicks' (joined with sections) gives its key values and what is "
        "aggregated; no event needs to know another\n"
        "    SELECT url AS k0, ts AS k1, 1 AS a0, user AS a1 FROM clicks\n"
        "\n"
        "partial\n"
        "  events are grouped by url and hour (windows of 1h); batch and speed run this over "
        "different events\n"
        "  batch also keeps the values behind p2, to count them exactly\n"
        "    SELECT k0, k1, count(a0) AS p0, sketch(a1) AS p1 FROM mapped GROUP BY k0, k1\n"
        "\n"
        "merge\n"
        "  p0 (sum): the two are added\n"
        "  p1 (hll): the sketches are united, so a value seen on both sides counts once\n"
        "  p2 (counted): the number is true while batch alone has counted\n"
        "\n"
        "finish\n"
        "  when read, the merged partials become the values of the aggregates\n"
        "  c0 (count): coalesce(p0, 0)\n"
        "  c1 (count_distinct): coalesce(p2, finish_hll(p1))\n"
        "  groups are kept where c0 > 1\n"
        "  rows are ordered by c0 DESC\n"
        "  the first 10 rows are the answer\n"
        "    SELECT k0 AS `url`, k1 AS `hour`, c0 AS `hits`, c1 AS `visitors` FROM merged "
        "WHERE c0 > 1 ORDER BY c0 DESC LIMIT 10\n"
        "\n"
        "visitors may be an estimate (± 1.6%): counted exactly by batch, and by a sketch for "
        "events that only speed has seen"
    )


def test_a_view_over_views_has_one_section() -> None:
    found = explain(PLAN, "busiest")
    assert [section.name for section in found.sections] == ["read"]
    assert found.sections[0].sql == BUSIEST.read_sql
    assert found.sections[0].words == ("computed when read, from the answers of visitors",)
    assert found.recompute is None
    assert str(found).endswith("every column is exact")


def test_a_view_without_keys_is_one_group() -> None:
    partial = explain(PLAN, "totals").sections[1]
    assert partial.words[0].startswith("events are grouped as one group;")
    assert partial.sql == "SELECT count(a0) AS p0 FROM mapped"


@pytest.mark.parametrize(
    ("carry", "state"),
    [
        (ProcessorPlan("visits", (), ()), "the state of processor 'visits'"),
        (MatchPlan(Threshold((), 3, 60), (), ()), "the open matches of a threshold"),
        (None, "the state of lag and sum"),
    ],
)
def test_a_carried_view_says_what_goes_from_event_to_event(
    carry: ProcessorPlan | MatchPlan | None, state: str
) -> None:
    steps = tuple(StepPlan(step, (), (), "w0", "BIGINT") for step in ("lag", "sum"))
    plan = CarryPlan("_carried_totals", "", () if carry else steps)
    if isinstance(carry, ProcessorPlan):
        plan = msgspec.structs.replace(plan, processor=carry)
    elif carry:
        plan = msgspec.structs.replace(plan, match=carry)
    assert _explained(TOTALS, kind="carried", carry=plan).sections[0].words == (
        f"the events of each key of stream 'clicks' are taken in their order, with {state}; what "
        "comes of it gives the key values and what is aggregated",
    )


@pytest.mark.parametrize(
    ("window", "kept", "read"),
    [
        (
            SlidingWindow(HOUR, HOUR // 4),
            "hour (windows of 1h every 15m, kept as panes of 15m)",
            "when read, each window is put together of the panes that lie in it",
        ),
        (
            CountWindow(10, 4),
            "hour (windows of 10 events every 4 events, kept as panes of 2 events)",
            "when read, each window is put together of the panes that lie in it",
        ),
        (
            SessionWindow(ends="x"),
            "hour (sessions)",
            "when read, intervals that touch are joined to one session",
        ),
    ],
)
def test_windows_that_are_put_together_say_so(window: WindowPlan, kept: str, read: str) -> None:
    keys = (VISITORS.keys[0], msgspec.structs.replace(VISITORS.keys[1], window=window))
    _, partial, _, finish = _explained(VISITORS, keys=keys).sections
    assert kept in partial.words[0]
    assert finish.words[0] == read


def _explained(view: ViewPlan, **change: Any) -> QueryExplanation:
    changed = msgspec.structs.replace(view, **change)
    return explain(msgspec.structs.replace(PLAN, views=(changed,)), view.name)


def test_the_engine_of_the_speed_layer_is_named_with_its_reason() -> None:
    kernel = KernelPlan(sql="SELECT 1")
    assert _explained(VISITORS, kernel=kernel).sections[1].words[-1] == (
        "it is computed vectorised, in DuckDB within Spark's tasks, and compared with Spark SQL"
    )
    kernel = KernelPlan(refused="'to_json' is not certified")
    assert _explained(VISITORS, kernel=kernel).sections[1].words[-1] == (
        "it is computed in Spark SQL: 'to_json' is not certified"
    )


def test_every_way_to_merge_has_its_words() -> None:
    assert set(_MERGES) == set(Merge)


def test_an_unknown_view_is_not_found_with_the_nearest_name() -> None:
    with pytest.raises(NotFound) as caught:
        explain(PLAN, "visitor")
    assert str(caught.value) == (
        "NotFound: there is no view 'visitor'\n  hint: did you mean 'visitors'?"
    )
    with pytest.raises(NotFound, match="there is no view 'x'") as caught:
        explain(PLAN, "x")
    assert caught.value.hint == "available: visitors, totals, busiest."


def test_a_derived_stream_is_explained_by_what_it_is_written_out_as() -> None:
    derived = DerivedPlan("visits", "clicks", ("sections",), "SELECT c.user FROM clicks AS c")
    plan = msgspec.structs.replace(PLAN, derived=(derived,))
    assert str(explain(plan, "Visits")) == (
        "visits is a derived stream: it is written into the views that read it; nothing is kept "
        "for it.\n"
        f"fingerprint {digest(derived)}\n"
        "\n"
        "derive\n"
        "  each event of 'clicks' (joined with sections) gives its events; no event needs another\n"
        "    SELECT c.user FROM clicks AS c"
    )


def test_sinks_of_a_view_are_explained_with_it() -> None:
    plan = msgspec.structs.replace(PLAN, sinks=(SINK,))
    assert explain(plan, "visitors").sections[-1].words == (
        "hourly sends it to file out/hourly.jsonl, exactly once: ON TIME ACCUMULATING",
    )
    assert [section.name for section in explain(plan, "busiest").sections] == ["read"]
