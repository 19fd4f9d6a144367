"""The rows that may become alerts: those of a rule's hidden view that are not alerts yet.

Over a stream, rows are read from speed's runs, and after a promotion from the generation's too; an
index of `_alerts` finds those that were raised. Over views, the store computes the answer, and the
rule's key columns identify a row (serving/alert_rows.py). tests/serving/test_alert_raiser.py checks
what is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from headrace.compile.flow import whole
from headrace.compile.plan import OutputPlan, Plan, RulePlan, ShapePlan, ViewPlan
from headrace.compile.view_subscription import streams_of
from headrace.core.event import KEY
from headrace.core.position import Position
from headrace.core.rule import hidden
from headrace.core.schema import Type
from headrace.core.shown_value import shown
from headrace.core.storage import Storage
from headrace.serving.alert_rows import new_rows
from headrace.serving.answer import rows_as_objects
from headrace.serving.catalog import live_plan, read_plan
from headrace.serving.commits import read_meta
from headrace.serving.database import Transaction
from headrace.serving.engine import run
from headrace.serving.merge import GROUP
from headrace.serving.merged_rows import LAYERS, SECONDS_MAX, STORED, read_stored
from headrace.serving.progress import read_stream, stored_times
from headrace.serving.runs import Layer
from headrace.serving.watermark import Times

CHUNK = 1_000
FLOOR = "alerts_floor"  # the key in `_meta`: a generation does not raise events that arrived before
Row = Sequence[Any]


@dataclass(frozen=True, slots=True)
class CandidateProgress:
    """How far the answer has come that a rule is evaluated on."""

    view: ViewPlan
    position: Position
    marks: Times  # the watermarks of the streams
    boundary: Position
    generation: int
    joined: bool  # the streams are joined, so the stream of a row's offset is not known

    @property
    def decided_by_offset(self) -> bool:
        """Whether a row is decided when the answer reaches its offset; a row of a pattern or a
        processor may be decided later.
        """
        made_later = self.view.carry is not None and self.view.carry.made is not None
        return not self.joined and not made_later

    def stored(self) -> tuple[str, str, int]:
        """Values that change with any progress, also of the watermark alone."""
        return str(self.position), stored_times(self.marks), self.generation


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row that is not an alert yet."""

    row_key: str
    body: dict[str, Any]
    fresh: bool  # found by speed
    time_us: int | None = None
    arrived_us: int | None = None
    place: tuple[int, int] | None = None  # partition and offset


def read_candidate_progress(
    db: Transaction, rule: RulePlan | ShapePlan
) -> CandidateProgress | None:
    """How far the rule's answer has come; None while it is being built for the first time."""
    plan = read_plan(db)
    view = plan.view(rule.view) if plan else None
    if plan is None or view is None or not _live(db, plan, view):
        return None
    if view.kept:
        view = live_plan(db, view.name) or view
    states = [read_stream(db, flow) for flow in streams_of(plan, view)]
    return CandidateProgress(
        view,
        whole(state.position for state in states),
        tuple(mark for state in states for mark in state.reached.marks),
        whole(state.boundary for state in states),
        sum(state.generation for state in states),
        any(state.plan.joined for state in states),
    )


def _live(db: Transaction, plan: Plan, view: ViewPlan) -> bool:
    if not view.kept:
        reads = [plan.view(name) for name in view.reads]
        return all(read is not None and _live(db, plan, read) for read in reads)
    # A view that is being rebuilt still answers with its old definition.
    live = live_plan(db, view.name)
    return live is not None and live.recompute == view.recompute


def candidates(
    db: Transaction, rule: RulePlan, at: CandidateProgress, promoted: bool
) -> Iterator[list[Candidate]]:
    """New rows in the order of their times, in chunks; also those of the generation if one was
    `promoted`.
    """
    if rule.keys is not None:
        return _view_candidates(db, rule, at.view)
    return _stream_candidates(db, rule, at.view, promoted)


def _stream_candidates(
    db: Transaction, rule: RulePlan, view: ViewPlan, promoted: bool
) -> Iterator[list[Candidate]]:
    rows = stream_rows(db, view, promoted)
    known = raised_rows(db, rule.name, [row[0] for row in rows])
    fresh = iter(row for row in rows if row[0] not in known)
    bodies = [output for output in view.outputs if not hidden(output.name)]
    while part := list(islice(fresh, CHUNK)):
        shown_bodies = bodies_of(bodies, [row[6:] for row in part])
        yield [
            Candidate(row[0], body, bool(row[1]), row[4], row[5], (row[2], row[3]))
            for row, body in zip(part, shown_bodies, strict=True)
        ]


def stream_rows(db: Transaction, view: ViewPlan, promoted: bool) -> list[Row]:
    """The rows of a hidden view over a stream, in the order of their times: `_key`, whether speed
    found it, and its columns. Rows of a generation are read after a promotion only, and only those
    that arrived at or after the floor.
    """
    partition, offset, time, arrived = (str(output.key) for output in view.outputs[:4])
    stored = read_stored(db, view, layers=LAYERS if promoted else [Layer.SPEED])
    columns = ", ".join(f"any_value({output.key}) AS {output.key}" for output in view.outputs)
    sql = (
        f"SELECT {KEY}, max({GROUP}) > 0 AS _fresh, {columns} FROM {STORED} GROUP BY {KEY} "
        f"HAVING max({GROUP}) > 0 OR any_value({arrived}) >= {read_floor(db)} "
        f"ORDER BY {time}, {partition}, {offset}"
    )
    found = run(sql, {STORED: stored}, SECONDS_MAX)
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def raised_rows(db: Transaction, rule: str, keys: Sequence[str]) -> set[str]:
    """Those of these rows that are alerts of a rule or a watch."""
    listed, value = db.listed(keys)
    sql = f"SELECT row_key FROM _alerts WHERE rule = ? AND row_key IN ({listed})"
    return {key for (key,) in db.execute(sql, (rule, value))}


def read_floor(db: Transaction) -> int:
    """The arrival time before which alerts may have been removed (serving/retention.py)."""
    return int(read_meta(db, FLOOR) or 0)


def _view_candidates(db: Transaction, rule: RulePlan, view: ViewPlan) -> Iterator[list[Candidate]]:
    rows = new_rows(db, rule, view)
    while part := list(islice(rows, CHUNK)):
        shown_bodies = rows_as_objects([row[1:] for row in part], view.outputs)
        yield [Candidate(row[0], body, True) for row, body in zip(part, shown_bodies, strict=True)]


def bodies_of(outputs: Sequence[OutputPlan], rows: Iterable[Row]) -> list[dict[str, Any]]:
    """The bodies of alerts, from stored rows."""
    kinds = [(output.name, Type.of(output.type)) for output in outputs]
    reads = [(name, type, Storage(type).read) for name, type in kinds]
    return [
        {name: shown(type, read(x)) for (name, type, read), x in zip(reads, row, strict=True)}
        for row in rows
    ]
