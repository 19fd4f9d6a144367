"""Sliding windows and sessions in the store: whatever is asked for, and however the events came in.

Each example is a log cut into two generations (the second incremental), two epochs and a last
incremental generation. After each, the whole answer and every narrowed one are the reference's.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from chance import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace.core.errors import BadRequest
from headrace.core.time import SECOND, from_iso, iso
from headrace.serving import staging
from headrace.serving.runs import Layer, count_runs

from .bench import WINDOWED, Bench, Click, alike, definitions, plan_of

SQL = definitions(WINDOWED)
PLAN = plan_of(SQL)
STARTS = {"slid": "span", "visits": "visit"}
CLICKS = st.lists(
    st.builds(Click, st.sampled_from(["/a", "it's", None]), st.none(), st.integers(0, 40)),
    max_size=8,
)
MOMENTS = st.none() | st.integers(-10, 45).map(
    lambda second: iso(from_iso("2026-01-01T00:00:00Z") + second * SECOND)
)


def asked(rows: list[dict[str, Any]], window: str, **said: str | None) -> list[dict[str, Any]]:
    """The rows that a question is about, looked for in the whole answer."""
    since, until = said.get("since") or "", said.get("until") or "9"
    return [
        row
        for row in rows
        if since <= row[window]["start"] < until and said.get("page", row["page"]) == row["page"]
    ]


def check(bench: Bench, since: str | None, until: str | None) -> None:
    for view, window in STARTS.items():
        expected = bench.expected(view)
        assert alike(bench.rows(view)) == alike(expected)
        narrowed = bench.reader.view(view, since=since, until=until).rows
        assert alike(narrowed) == alike(asked(expected, window, since=since, until=until))
        of_page = bench.reader.view(view, {"page": "it's"}, since=since).rows
        assert alike(of_page) == alike(asked(expected, window, since=since, page="it's"))
        if since:
            for sign, upper in ((">=", None), ("=", f"{since}\x00")):
                sql = f"SELECT * FROM {view} WHERE {window}.start {sign} '{since}'"
                wanted = asked(expected, window, since=since, until=upper)
                assert alike(bench.reader.sql(sql).rows) == alike(wanted)


@settings(max_examples=examples(25))
@given(pieces=st.tuples(CLICKS, CLICKS, CLICKS, CLICKS), since=MOMENTS, until=MOMENTS)
@example(  # the second generation makes one session of three, and the epoch lengthens it
    pieces=(
        [Click("/a", None, 0), Click("/a", None, 8), Click("/a", None, 16)],
        [Click("/a", None, 4), Click("/a", None, 12)],
        [Click("/a", None, 21)],
        [],
    ),
    since="2026-01-01T00:00:08Z",
    until=None,
)
def test_answers_are_the_references_however_the_events_came_in(
    pieces: tuple[list[Click], ...], since: str | None, until: str | None
) -> None:
    with TemporaryDirectory() as folder:
        bench = Bench(Path(folder) / "serving.db", PLAN, SQL)
        try:
            for number, piece in enumerate(pieces):
                bench.send(*piece) if piece else None
                if number < 2:
                    bench.build(full=number == 0)
                    check(bench, since, until)
            check(bench, since, until)
            audits = bench.build(full=False, audit=True)
            assert [audit.examples for audit in audits if audit.differences] == []
            check(bench, since, until)
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(staging, "RUNS_MAX", 0)
                bench.build(full=False)  # makes one run of all that there are
            assert stored(bench, "visits", Layer.GENERATION) == len(bench.expected("visits"))
        finally:
            bench.close()


def stored(bench: Bench, view: str, layer: Layer) -> int:
    """How many rows of a view are stored in a layer."""
    plan = bench.plan.view(view)
    assert plan is not None
    with bench.store.read() as db:
        return count_runs(db, plan.stored_name, layer)[1]


def test_an_event_costs_one_row_however_many_windows_hold_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "serving.db", PLAN, SQL)
    bench.build()
    bench.send(Click("/a", None, 9))
    assert len(bench.rows("slid")) == 3
    assert stored(bench, "slid", Layer.SPEED) == 1
    bench.close()


@pytest.mark.parametrize("view", STARTS)
def test_a_window_is_asked_for_by_its_start_and_not_as_a_key(tmp_path: Path, view: str) -> None:
    bench = Bench(tmp_path / "serving.db", PLAN, SQL)
    bench.build()
    with pytest.raises(BadRequest, match="is not a key of view"):
        bench.reader.view(view, {STARTS[view]: "2026-01-01T00:00:00Z"})
    bench.close()
