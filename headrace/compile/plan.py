"""The compiled plan of a project: printable, comparable, and stored with the data that it built.

A plan has everything that batch, speed and serving need; none of them reads definitions. Two texts
that differ only in formatting give equal plans. `recompute` is the fingerprint of everything that a
view's partials depend on: while it is the same, a changed view needs no rebuild.
tests/compile/test_plan.py checks both.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from functools import cached_property

import msgspec

from headrace.compile.windows import WindowPlan, coalesced
from headrace.core.aggregate import Approximation
from headrace.core.event import CUT
from headrace.core.flow import stream_names
from headrace.core.pattern import Pattern, Threshold
from headrace.core.rule import hidden, view_of, watched_of
from headrace.core.schema import Column, ComputedExpression, Schema, Type, nested
from headrace.core.subscription import Guarantee, Subscription, ViewShape
from headrace.core.time import HOUR, MINUTE
from headrace.define.definitions import PaceDefinition, TableDefinition
from headrace.define.dialect import parse_expression, sql_of
from headrace.destination.kinds import Destination

MERGED = "merged"  # the relation of a view's merged rows, in its finish
FRESH = "_fresh"  # of a merged row: whether it includes partials of speed
WINDOW = "WINDOW"  # the type of a window in an answer: {"start": …, "end": …}
_NOT_PARAMETERS = {WINDOW, "VARIANT", "VOID"}  # no text equals a value of these types
# Lateness partials of a windowed view: see compile/lateness.py.
EVENTS, LATE, ABSORBED, ABSORBED_BY = "_events", "_late", "_absorbed", "_absorbed_by"


class ViewKind(StrEnum):
    """Where the rows of a view come from."""

    MERGEABLE = "mergeable"  # merged from partials of batch and speed
    CARRIED = "carried"  # the same, over the result of a stateful fold
    READ = "read"  # computed from other views when it is read


class _PlanNode(msgspec.Struct, frozen=True):
    """Base class of plans, which are stored as JSON."""


class KeyPlan(_PlanNode, frozen=True):
    """One column that a view is grouped by. `sql` is its stored form."""

    column: str
    name: str
    type: str
    sql: str
    window: WindowPlan | None = None


class PartialPlan(_PlanNode, frozen=True):
    """Partial columns that are merged together, and the Spark SQL that computes them."""

    merge: str
    columns: tuple[str, ...]
    storages: tuple[str, ...]
    lifts: tuple[str, ...]
    # Of count(DISTINCT): Spark SQL of the values that batch counts exactly.
    counted: str | None = None


class CallPlan(_PlanNode, frozen=True):
    """The value of one aggregate: `finish` is DuckDB's SQL over partial columns."""

    column: str
    name: str
    type: str
    finish: str
    whole: bool = False  # it counts every event: count(*) without FILTER
    cut: str = ""  # of a list: DuckDB's SQL that is true if it was truncated at its limit

    @property
    def cut_column(self) -> str:
        """The column of merged rows that is true if the list was truncated."""
        return f"{self.column}_cut"


class OutputPlan(_PlanNode, frozen=True):
    """One column of the answer: `finish` is Spark SQL over the columns of keys and calls."""

    name: str
    type: str
    finish: str
    key: str | None = None  # the key column, if the output is one
    estimate: Approximation | None = None  # None: always exact
    read_key: bool = False  # of a view over views: an unchanged key of one of them

    @property
    def keyed(self) -> bool:
        """Whether it is a key column."""
        return self.key is not None or self.read_key


class StepPlan(_PlanNode, frozen=True):
    """One step of a fold: the columns that it reads, and the column and Spark type that it adds."""

    step: str
    columns: tuple[str, ...]
    parameters: tuple[float | int | None, ...]
    output: str
    type: str


class ProcessorPlan(_PlanNode, frozen=True):
    """A user's processor: its input columns, and its output columns with their Spark types."""

    name: str
    columns: tuple[str, ...]
    outputs: tuple[tuple[str, str], ...]


class MatchPlan(_PlanNode, frozen=True):
    """A pattern or threshold, and its output columns with their Spark types: those of the row whose
    position a result has, and its measures. `starts` is Spark SQL that is true for events with
    which a match may begin; None if other events of a key matter too.
    """

    pattern: Pattern | Threshold
    passed: tuple[tuple[str, str], ...]
    measured: tuple[tuple[str, str], ...]
    starts: str | None = None

    @property
    def outputs(self) -> tuple[tuple[str, str], ...]:
        return (*self.passed, *self.measured)


class CarryPlan(_PlanNode, frozen=True):
    """A stateful fold over the events of each key, in order. `sql` selects `_key`, `_time` and
    `_seq` of each event and the columns to pass through; the result is the relation `name`.
    """

    name: str
    sql: str
    steps: tuple[StepPlan, ...] = ()
    processor: ProcessorPlan | None = None
    match: MatchPlan | None = None

    @property
    def made(self) -> tuple[tuple[str, str], ...] | None:
        """The columns and types of the result, if its rows are new; None if events are passed
        through.
        """
        maker = self.processor or self.match
        return maker.outputs if maker else None


class JoinPlan(_PlanNode, frozen=True):
    """How far apart the events of a joined pair are: lower <= right's time - left's <= upper."""

    left: str  # the streams
    right: str
    lower_us: int
    upper_us: int
    # Spark SQL that counts the outer rows that a late partner withdraws; empty for inner joins.
    withdrawn: tuple[str, ...] = ()


class FoldInputPlan(_PlanNode, frozen=True):
    """DuckDB's SQL over the decoded events and tables: the rows that a fold takes, with their Spark
    types; and over these rows, the keys with which a match may begin, if others are left out.
    """

    sql: str
    columns: tuple[tuple[str, str], ...]
    starts: str = ""


class KernelPlan(_PlanNode, frozen=True):
    """The vectorised form of a view's partials: DuckDB's SQL over the decoded events and tables, or
    over the rows of its fold. Without it Spark SQL computes them, for the reason in `refused`.
    """

    sql: str = ""
    refused: str = ""
    fold: FoldInputPlan | None = None  # of a carried view
    # For builds: each exact distinct count's partial column, and the query of the values behind it.
    values: tuple[tuple[str, str], ...] = ()
    columns: tuple[str, ...] = ()  # of the stream, that these read

    @property
    def stateless(self) -> bool:
        """Whether it computes a view of which each event counts by itself."""
        return bool(self.sql) and self.fold is None


class ViewPlan(_PlanNode, frozen=True, dict=True):
    """How one view is maintained and read. Fingerprints are cached: every read uses them."""

    name: str
    kind: ViewKind
    origin: str
    outputs: tuple[OutputPlan, ...]
    stream: str = ""  # the flow: the stream, or the joined streams as "orders+payments"
    tables: tuple[str, ...] = ()
    carry: CarryPlan | None = None  # the fold whose relation `map_sql` reads
    map_sql: str = ""
    keys: tuple[KeyPlan, ...] = ()
    partials: tuple[PartialPlan, ...] = ()
    calls: tuple[CallPlan, ...] = ()
    having: str | None = None
    order: tuple[str, ...] = ()
    limit: int | None = None
    reads: tuple[str, ...] = ()  # views
    read_sql: str = ""  # of a view over views: Spark SQL over `reads`
    inputs: str = ""  # fingerprint of the stream, tables and functions it reads
    join: JoinPlan | None = None
    definition: str = ""  # the whole SELECT with derived streams inlined, for the audit
    kernel: KernelPlan = KernelPlan()

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams of its flow; none if it is read."""
        return stream_names(self.stream) if self.kept else ()

    @property
    def kept(self) -> bool:
        """Whether batch and speed maintain it."""
        return self.kind != ViewKind.READ

    @property
    def partial_sql(self) -> str:
        """Spark SQL: the events of the stream's relation -> partial columns by key. The first
        column of a carried view is the group of the events.
        """
        keys = [*([CUT] if self.carry else []), *(key.column for key in self.keys)]
        lifts = [
            f"{lift} AS {column}"
            for partial in self.partials
            for lift, column in zip(partial.lifts, partial.columns, strict=False)
        ]
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        rows = self.map_sql
        if self.joins:
            others = [*([CUT] if self.carry else []), *self.plain_keys]
            rows = coalesced(rows, self.joins, others)
        return f"SELECT {', '.join([*keys, *lifts])} FROM ({rows}) AS mapped{group}"

    @property
    def finish_sql(self) -> str:
        """Spark SQL: the merged rows (relation `merged`) -> the rows of the answer."""
        items = ", ".join(f"{out.finish} AS `{out.name}`" for out in self.outputs)
        having = f" WHERE {self.having}" if self.having else ""
        order = f" ORDER BY {', '.join(self.order)}" if self.order else ""
        limit = f" LIMIT {self.limit}" if self.limit is not None else ""
        return f"SELECT {items} FROM {MERGED}{having}{order}{limit}"

    def key_parameter(self, name: str) -> OutputPlan | None:
        """The output that a parameter can filter by: a key, or any column of a view over views,
        that a text can equal.
        """
        output = self.output(name)
        if output is None or output.type in _NOT_PARAMETERS or nested(output.type):
            return None
        return output if output.key is not None or not self.kept else None

    @property
    def windowed(self) -> tuple[str, WindowPlan] | None:
        """The key column that is a window, and its plan."""
        return next(((key.column, key.window) for key in self.keys if key.window), None)

    @property
    def plain_keys(self) -> list[str]:
        """The key columns that are not windows."""
        return [key.column for key in self.keys if not key.window]

    @property
    def joins(self) -> str | None:
        """The session key column, whose overlapping intervals are merged."""
        return self.windowed[0] if self.windowed and self.windowed[1].joins else None

    @property
    def regroups(self) -> bool:
        """Whether stored rows are regrouped into the rows of an answer."""
        return bool(self.windowed and self.windowed[1].regroups)

    @property
    def counted(self) -> tuple[PartialPlan, ...]:
        """The partials whose values batch counts exactly."""
        return tuple(partial for partial in self.partials if partial.counted)

    def values_sql(self, partial: PartialPlan) -> str:
        """Spark SQL: the events of the stream's relation -> the distinct values behind an exact
        distinct count, with their keys.
        """
        keys = "".join(f"{key.column}, " for key in self.keys)
        return (
            f"SELECT DISTINCT {keys}{partial.counted} AS v "
            f"FROM ({self.map_sql}) AS mapped WHERE ({partial.counted}) IS NOT NULL"
        )

    @property
    def has_lateness(self) -> bool:
        """Whether it stores the lateness of each window's events."""
        return any(LATE in partial.columns for partial in self.partials)

    @property
    def rowwise(self) -> bool:
        """Whether each row of the answer depends on one merged row only."""
        return not self.order and self.limit is None

    @cached_property
    def recompute(self) -> str:
        """Fingerprint of everything that the view's partials depend on."""
        decisive = [self.kind, self.stream, self.keys, self.partials, self.map_sql, self.inputs]
        return digest([*decisive, self.carry] if self.carry else decisive)

    @cached_property
    def stored_name(self) -> str:
        """The name under which its partials are stored; views with equal partials do not share
        them.
        """
        return f"{self.name}_{self.recompute}"

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the whole view. The kernel is left out: it changes no answer."""
        return digest(msgspec.structs.replace(self, origin="", kernel=KernelPlan()))

    def output(self, name: str) -> OutputPlan | None:
        return next((out for out in self.outputs if out.name.lower() == name.lower()), None)


class ColumnPlan(_PlanNode, frozen=True, array_like=True):
    """A declared column, and how it is read from an event or computed."""

    name: str
    type: str
    nullable: bool = True
    format: str | None = None
    path: str | None = None
    default: str | None = None
    generated: str | None = None

    @staticmethod
    def of(c: Column) -> ColumnPlan:
        generated = sql_of(parse_expression(c.generated)) if c.generated else None
        return ColumnPlan(c.name, c.type.spark, c.nullable, c.format, c.path, c.default, generated)

    @property
    def column(self) -> Column:
        type = Type.parse(self.type)
        generated = ComputedExpression(self.generated) if self.generated is not None else None
        return Column(
            self.name, type, self.nullable, self.format, self.path, self.default, generated
        )


class StreamPlan(_PlanNode, frozen=True):
    """A declared stream."""

    name: str
    columns: tuple[ColumnPlan, ...]
    format: str
    partitions: int
    watermark: tuple[str, int] | None = None  # column, delay in microseconds
    key: str | None = None
    id: str | None = None
    # How far ahead of its arrival an event's time may be to move the watermark. Lateness depends on
    # it, so it is the same for every reader and cannot be changed later.
    ahead_us: int = HOUR
    # The idle time after which a partition no longer holds back the reported watermark.
    idle_us: int = MINUTE
    pace: PaceDefinition = PaceDefinition()
    raw: bool = False  # whether a definition reads `_raw`, so that speed must read it

    @property
    def schema(self) -> Schema:
        return Schema(tuple(column.column for column in self.columns))


class TablePlan(_PlanNode, frozen=True):
    name: str
    ddl: str
    format: str
    location: str
    options: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of(t: TableDefinition) -> TablePlan:
        options = tuple(sorted(t.options.items()))
        return TablePlan(t.name, t.schema.spark_ddl, t.format, t.location, options)


class DerivedPlan(_PlanNode, frozen=True):
    """A derived stream; `sql` reads the declared streams' relations, or that of `carry`."""

    name: str
    stream: str  # the flow
    tables: tuple[str, ...]
    sql: str
    carry: CarryPlan | None = None


class SinkPlan(_PlanNode, frozen=True):
    """A sink: a view's panes, sent to a destination."""

    name: str
    subscription: Subscription
    shape: ViewShape
    destination: Destination
    guarantee: Guarantee
    origin: str = ""


class RulePlan(_PlanNode, frozen=True):
    """A rule: the alerts that it raises from its hidden view, and where they are sent."""

    name: str
    text: str
    columns: tuple[str, ...]  # of an alert
    severity: str
    destinations: tuple[Destination, ...]
    suppress_us: int | None
    per: tuple[str, ...]
    coupling: str
    corrections: bool
    keys: tuple[str, ...] | None  # of a rule over views: the key of a row; else None
    streams: tuple[str, ...]
    origin: str = ""
    session: str | None = None  # the key that is a session, which may grow

    @property
    def view(self) -> str:
        return view_of(self.name)


class ShapePlan(_PlanNode, frozen=True):
    """A shape: all watches that differ in constants alone, which are evaluated together."""

    name: str
    sql: str  # without the constants
    columns: tuple[str, ...]  # of a match
    streams: tuple[str, ...]
    types: tuple[str, ...]  # of the constants
    bounds: tuple[tuple[int, str], ...]  # constants with the weakest bound: min or max
    tables: tuple[str, ...]  # of the constants, and of their bounds

    @property
    def view(self) -> str:
        return watched_of(self.name)


class WatchPlan(_PlanNode, frozen=True):
    """A watch: its constants, its end, and its destinations."""

    name: str
    text: str
    shape: str
    constants: tuple[float | str, ...]
    severity: str
    destinations: tuple[Destination, ...]
    until_us: int | None
    matches_max: int | None
    origin: str = ""


class Plan(_PlanNode, frozen=True):
    """The plan of a whole project."""

    name: str
    streams: tuple[StreamPlan, ...]
    tables: tuple[TablePlan, ...]
    derived: tuple[DerivedPlan, ...]
    views: tuple[ViewPlan, ...]
    sinks: tuple[SinkPlan, ...] = ()
    rules: tuple[RulePlan, ...] = ()
    shapes: tuple[ShapePlan, ...] = ()
    watches: tuple[WatchPlan, ...] = ()

    @property
    def shown_tables(self) -> tuple[TablePlan, ...]:
        """The tables that the user defined."""
        return tuple(table for table in self.tables if not hidden(table.name))

    @property
    def shown_views(self) -> tuple[ViewPlan, ...]:
        """The views that the user defined."""
        return tuple(view for view in self.views if not hidden(view.name))

    @property
    def shown_derived(self) -> tuple[DerivedPlan, ...]:
        return tuple(derived for derived in self.derived if not hidden(derived.name))

    def stream(self, name: str) -> StreamPlan:
        return next(stream for stream in self.streams if stream.name == name)

    def view(self, name: str) -> ViewPlan | None:
        return next((view for view in self.views if view.name.lower() == name.lower()), None)


def digest(value: object) -> str:
    """A short fingerprint of any plain value."""
    return hashlib.sha256(msgspec.json.encode(value)).hexdigest()[:12]
