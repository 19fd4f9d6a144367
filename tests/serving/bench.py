"""A store without Spark: plans by the real compiler, and partials lifted by hand.

The compiler asks an analyser for types alone, and the types of `DEFINITIONS` are plain enough to be
told by `HeldAnalyser`. `lifted` is a second, small lift of the views in `DEFINITIONS`, in Python;
what the store makes of its rows is compared with the reference interpreter, which shares no code
with either.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasketches import hll_sketch, tgt_hll_type
from sqlglot import exp

from headrace.compile.passes import compile_project
from headrace.compile.plan import Plan, ViewPlan
from headrace.core.aggregate import HLL_LG_K
from headrace.core.origin import Origin
from headrace.core.position import Position
from headrace.core.time import MINUTE, SECOND, from_iso, iso
from headrace.define.dialect import parse_query
from headrace.define.project import Project
from headrace.define.settings import Settings
from headrace.define.statements import read_statements
from headrace.serving.merge import stored_schema
from headrace.serving.read import Reader
from headrace.serving.store import AuditResult, Change, Epoch, StagedBuild, Version
from headrace.serving.watermark import FlowProgress
from headrace.testing.declarations import read_declarations
from headrace.testing.decode import decoded
from headrace.testing.reference_engine import reference_of

from .databases import open_store

Row = tuple[Any, ...]
STREAM = """
CREATE STREAM clicks (page STRING, user STRING, ms BIGINT, ts TIMESTAMP,
  WATERMARK ts DELAY OF INTERVAL 10 SECONDS) WITH (partitions = '2');
"""
VIEWS = {
    "hits": "SELECT page, window(ts, '1 minute') AS minute, count(*) AS n, max(ms) AS slowest "
    "FROM clicks GROUP BY page, window(ts, '1 minute')",
    "users": "SELECT page, count(DISTINCT user) AS users, approx_count_distinct(user) AS about "
    "FROM clicks GROUP BY page",
    "total": "SELECT count(*) AS n, max(ms) AS slowest, max(ts) AS last FROM clicks",
    "top": "SELECT page, count(*) AS n FROM clicks GROUP BY page HAVING count(*) > 1 "
    "ORDER BY count(*) DESC, page LIMIT 2",
    "pages": "SELECT page, sum(n) AS hits FROM hits GROUP BY page",
}
KEPT = tuple(name for name in VIEWS if name != "pages")
# Views whose rows are put together when read.
WINDOWED = {
    "slid": "SELECT page, window(ts, '10 seconds', '4 seconds') AS span, count(*) AS n "
    "FROM clicks GROUP BY page, window(ts, '10 seconds', '4 seconds')",
    "visits": "SELECT page, session_window(ts, '5 seconds') AS visit, count(*) AS n "
    "FROM clicks GROUP BY page, session_window(ts, '5 seconds')",
}


def definitions(views: dict[str, str] = VIEWS, stream: str = STREAM) -> str:
    return stream + "".join(f"CREATE VIEW {name} AS {text};\n" for name, text in views.items())


DEFINITIONS = definitions()


class HeldAnalyser:
    """Knows the types of plain columns and aggregates, which is all that the views here ask."""

    _BY_NAME = {  # noqa: RUF012
        "page": "string", "user": "string", "ms": "bigint", "ts": "timestamp", "_dated": "timestamp"
    }  # fmt: skip
    _COUNTS = (exp.Count, exp.ApproxDistinct, exp.Sum)

    def relation(self, name: str, ddl: str) -> None:
        """Nothing needs to be known of it."""

    def analyse(self, sql: str, origin: Origin, name: str | None = None) -> list[tuple[str, str]]:
        items = parse_query(sql, origin).expressions
        if items[0].is_star:
            return [(name, type) for name, type in self._BY_NAME.items() if name != "_dated"]
        return [(item.alias_or_name, self._type(item.unalias())) for item in items]

    def equal(self, sql: str) -> bool:
        return False

    def _type(self, item: Any) -> str:
        if isinstance(item, exp.Max | exp.Paren | exp.Coalesce):
            return self._type(item.this)
        if isinstance(item, exp.Column):
            return self._BY_NAME.get(item.name, "bigint")
        return "bigint" if isinstance(item, (*self._COUNTS, exp.Literal)) else "struct"


def project_of(folder: Path, sql: str = DEFINITIONS) -> Project:
    return Project(folder, Settings("bench"), tuple(read_statements(sql, "bench.sql")))


def plan_of(sql: str = DEFINITIONS) -> Plan:
    """The plan of these definitions, compiled without Spark."""
    return compile_project(project_of(Path(), sql), HeldAnalyser())


PLAN = plan_of()


@dataclass(frozen=True, slots=True)
class Click:
    page: str | None
    user: str | None
    second: int
    ms: int | None = None
    partition: int = 0
    late_us: int = 0  # as the decoder would say it

    @property
    def at_us(self) -> int:
        return from_iso("2026-01-01T00:00:00Z") + self.second * SECOND

    @property
    def record(self) -> bytes:
        said = {"page": self.page, "user": self.user, "ms": self.ms, "ts": iso(self.at_us)}
        return json.dumps(said).encode()


# Two partitions, a page that is NULL, a page with quotes, and users who come again.
CLICKS = (
    Click("/a", "ann", 5, 12),
    Click("/b", "bob", 6, partition=1),
    Click("/a", "bob", 65, 7),
    Click(None, "ann", 70),
    Click("/a", "ann", 72, 3, 1),
    Click("it's", "cid", 10, 1, 1),
    Click("/b", "dan", 130, 40),
    Click("/a", "eve", 2, 99),
)


def sketch(users: Sequence[str | None]) -> bytes | None:
    made = hll_sketch(HLL_LG_K, tgt_hll_type.HLL_8)
    known = [user for user in users if user is not None]
    for user in known:
        made.update(user)
    return bytes(made.serialize_compact()) if known else None


def lifted(view: str, clicks: Sequence[Click]) -> list[Row]:
    """Key and lifted columns of a view for these events, as Spark would give them."""
    if view == "visits":
        return _sessions(clicks)
    groups: defaultdict[Row, list[Click]] = defaultdict(list)
    for click in clicks:
        pane = click.at_us - click.at_us % (2 * SECOND)
        minute = click.at_us - click.at_us % MINUTE
        keys: dict[str, Row] = {
            "hits": (click.page, minute),
            "slid": (click.page, pane),
            "total": (),
        }
        key = keys.get(view, (click.page,))
        groups[key].append(click)
    if view == "total":
        groups[()] += []
    return [(*key, *_partials(view, group)) for key, group in groups.items()]


def _lateness(group: list[Click]) -> Row:
    """Events, late ones, the sum and the most of their lateness, and what batch fills in."""
    late_us = [click.late_us for click in group if click.late_us]
    total = float(sum(late_us)) if late_us else None
    return len(group), len(late_us), total, max(late_us, default=None), None, None


def _sessions(clicks: Sequence[Click]) -> list[Row]:
    """(page, start, end, count, lateness) of each session of these events."""
    found: list[list[Click]] = []
    for click in sorted(clicks, key=lambda click: (str(click.page), click.at_us)):
        last = found[-1][-1] if found else None
        if last and last.page == click.page and click.at_us <= last.at_us + 5 * SECOND:
            found[-1].append(click)
        else:
            found.append([click])
    return [
        (group[0].page, group[0].at_us, group[-1].at_us + 5 * SECOND, len(group), *_lateness(group))
        for group in found
    ]


def _partials(view: str, group: list[Click]) -> Row:
    slowest = max((click.ms for click in group if click.ms is not None), default=None)
    if view == "users":
        return (sketch([click.user for click in group]),)
    if view == "total":
        return len(group), slowest, max((click.at_us for click in group), default=None)
    if view == "hits":
        return len(group), slowest, *_lateness(group)
    return (len(group), *_lateness(group)) if view == "slid" else (len(group),)


def as_lifted(plan: ViewPlan, rows: Sequence[Row]) -> pa.Table:
    """Rows of key and lifted columns as Spark gives them."""
    lifts = [c for p in plan.partials for c in p.columns[: len(p.lifts)]]
    schema = stored_schema(plan)
    fields = [schema.field(name) for name in [*(key.column for key in plan.keys), *lifts]]
    columns = list(zip(*rows, strict=True)) or [()] * len(fields)
    pairs = zip(fields, columns, strict=True)
    return pa.table({field.name: pa.array(values, field.type) for field, values in pairs})


def values_of(version: Version, clicks: Sequence[Click]) -> dict[str, pa.Table]:
    """The distinct values behind each exact distinct count, as a build gives them."""
    seen = {(click.page, click.user) for click in clicks if click.user is not None}
    pages, users = zip(*sorted(seen, key=repr), strict=True) if seen else ((), ())
    values = pa.table({"k0": pa.array(pages, pa.string()), "v": pa.array(users, pa.string())})
    return {partial.columns[0]: values for partial in version.plan.counted}


@dataclass
class HeldClock:
    now_us: int = from_iso("2026-01-01T01:00:00Z")

    def __call__(self) -> int:
        return self.now_us


@dataclass
class Bench:
    """A store, and the events that it has been told of."""

    path: Path
    plan: Plan = PLAN
    sql: str = DEFINITIONS
    clock: HeldClock = field(default_factory=HeldClock)
    clicks: list[Click] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = open_store(self.path, clock=self.clock)
        self.store.take_over()
        self.changes: list[Change] = self.store.deploy(self.plan)
        self.reader = Reader(self.store.db, clock=self.clock)

    def lifted(self, view: str, clicks: Sequence[Click], first: Sequence[int]) -> list[Row]:
        """What Spark would give for these events, which begin at the offsets `first`."""
        return lifted(view, clicks)

    def rows_of(self, plan: ViewPlan, clicks: Sequence[Click], first: Sequence[int]) -> pa.Table:
        return as_lifted(plan, self.lifted(plan.name, clicks, first))

    def position(self, clicks: Sequence[Click]) -> Position:
        return Position(tuple(sum(click.partition == n for click in clicks) for n in (0, 1)))

    def highs(self, clicks: Sequence[Click]) -> tuple[int | None, ...]:
        return tuple(
            max((click.at_us for click in clicks if click.partition == n), default=None)
            for n in (0, 1)
        )

    def reached(self, clicks: Sequence[Click]) -> FlowProgress:
        """Where these events bring the stream if they are taken now."""
        state = self.store.stream("clicks")
        return state.after(self.position(clicks), self.highs(clicks), self.clock())

    def epoch(self, *clicks: Click) -> Epoch:
        """The epoch that these events are, after all that came before."""
        lower, after = self.position(self.clicks), [*self.clicks, *clicks]
        counts = {"events": len(clicks), "late": 0, "duplicates": 0, "dead_letters": 0}
        versions = self.store.versions("clicks")
        rows = {v.id: self.rows_of(v.plan, clicks, lower.offsets) for v in versions}
        generation = self.store.stream("clicks").generation
        return Epoch("clicks", generation, lower, self.reached(after), counts, rows, self.clock())

    def stage(self, version: Version, full: bool, clicks: Sequence[Click]) -> StagedBuild:
        """A build of these events."""
        rows = self.rows_of(version.plan, clicks, (0, 0))
        return self.store.stage(version, full, rows, values_of(version, clicks))

    def send(self, *clicks: Click) -> bool:
        added = self.store.commit_epoch(self.epoch(*clicks))
        self.clicks += clicks
        return added

    def build(self, *, full: bool = True, audit: bool = False) -> list[AuditResult]:
        """A generation of all events so far; if not `full`, of those after the boundary."""
        state = self.store.stream("clicks")
        boundary = self.position(self.clicks)
        self.store.close_group("clicks")
        group = max((group.number for group in self.store.closed_groups("clicks")), default=0)
        staged = []
        versions = self.store.versions("clicks")
        replaced = {version.name for version in versions if version.state == "building"}
        for version in versions:
            if version.state == "live" and version.name in replaced:
                continue
            whole = full or version.state == "building"
            rest = [] if whole else list(state.boundary.offsets)
            clicks = after(self.clicks, rest)
            first = (0, 0) if whole else state.boundary.offsets
            rows, values = self.rows_of(version.plan, clicks, first), values_of(version, clicks)
            staged.append(self.store.stage(version, whole, rows, values))
        audits = [self.store.audit_staged(build, group) for build in staged] if audit else []
        here = state.reached if boundary == state.position else self.reached(self.clicks)
        self.store.promote("clicks", state.generation, here, group, staged, audits)
        return audits

    def rows(self, view: str) -> list[dict[str, Any]]:
        return self.reader.view(view).rows

    def expected(self, view: str) -> list[dict[str, Any]]:
        """What the reference interpreter answers for the events so far."""
        said, events, ends = read_declarations(self.sql), [], [0, 0]
        for click in self.clicks:
            place = {"_partition": click.partition, "_offset": ends[click.partition]}
            ends[click.partition] += 1
            events.append(decoded(click.record, said.streams[0].columns) | place)
        return reference_of(said, {}).answer(view, {"clicks": events})

    def close(self) -> None:
        self.store.close()


def after(clicks: Sequence[Click], offsets: list[int]) -> list[Click]:
    """The events at these offsets and after them; all where there are none."""
    left, found = offsets or [0, 0], []
    left = list(left)
    for click in clicks:
        if left[click.partition] > 0:
            left[click.partition] -= 1
        else:
            found.append(click)
    return found


def alike(rows: list[dict[str, Any]]) -> list[str]:
    """Rows in an order that does not depend on how they were asked for."""
    return sorted(json.dumps(row, sort_keys=True) for row in rows)
