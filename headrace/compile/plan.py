"""What is decided about a project: printable, comparable, and kept with what it has built.

A plan says everything that batch, speed and serving need; none of them reads definitions. Two
texts that differ only in formatting give equal plans. `recompute` is the fingerprint of what
decides a view's partials: while it stays, a changed view needs no rebuild.
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
from headrace.core.schema import Column, ComputedExpression, Schema, Type
from headrace.core.subscription import Guarantee, Subscription, ViewShape
from headrace.core.time import HOUR, MINUTE
from headrace.define.definitions import PaceDefinition, TableDefinition
from headrace.define.dialect import parse_expression, sql_of
from headrace.destination.kinds import Destination

MERGED = "merged"  # the relation of a view's merged rows, in its finish
FRESH = "_fresh"  # of a merged row: whether speed took part in it
WINDOW = "WINDOW"  # the type of a window in an answer: {"start": …, "end": …}
# Partial columns of a windowed view beside its own: see compile/lateness.py.
EVENTS, LATE, ABSORBED, ABSORBED_BY = "_events", "_late", "_absorbed", "_absorbed_by"


class ViewKind(StrEnum):
    """Where the rows of a view come from."""

    MERGEABLE = "mergeable"  # from the partials that batch and speed keep
    CARRIED = "carried"  # the same, of what a fold makes of the events of each key
    READ = "read"  # from the answers of other views, when it is read


class _Noun(msgspec.Struct, frozen=True):
    """Plans are stored as JSON, so their nouns are msgspec structs."""


class KeyPlan(_Noun, frozen=True):
    """One column that a view is grouped by. `sql` gives it in storage form."""

    column: str
    name: str
    type: str
    sql: str
    window: WindowPlan | None = None


class PartialPlan(_Noun, frozen=True):
    """Partial columns that are merged together, and the Spark SQL that lifts them."""

    merge: str
    columns: tuple[str, ...]
    storages: tuple[str, ...]
    lifts: tuple[str, ...]
    # Spark SQL for the values whose exact number batch counts, for count(DISTINCT).
    counted: str | None = None


class CallPlan(_Noun, frozen=True):
    """The value of one aggregate: `finish` is DuckDB's SQL over partial columns."""

    column: str
    name: str
    type: str
    finish: str
    whole: bool = False  # it counts every event: count(*) without FILTER
    cut: str = ""  # of a list: DuckDB's SQL that is true where it was cut at its limit

    @property
    def cut_column(self) -> str:
        """The column of merged rows that is true where the list was cut."""
        return f"{self.column}_cut"


class OutputPlan(_Noun, frozen=True):
    """One column of the answer: `finish` is Spark SQL over the columns of keys and calls."""

    name: str
    type: str
    finish: str
    key: str | None = None  # the key column, where the output is one
    estimate: Approximation | None = None  # None: always exact
    read_key: bool = False  # of a view over views: a key of one of them, as it is

    @property
    def keyed(self) -> bool:
        """Whether its values name rows and measure nothing."""
        return self.key is not None or self.read_key


class StepPlan(_Noun, frozen=True):
    """One carried step: which columns it reads, and the column and Spark type that it adds."""

    step: str
    columns: tuple[str, ...]
    parameters: tuple[float | int | None, ...]
    output: str
    type: str


class ProcessorPlan(_Noun, frozen=True):
    """A user's processor: the columns that it reads, and the columns and Spark types it makes."""

    name: str
    columns: tuple[str, ...]
    outputs: tuple[tuple[str, str], ...]


class MatchPlan(_Noun, frozen=True):
    """A pattern or threshold, and the columns and Spark types that come out: those of the row that
    a result has the place of, and those that are measured. `starts` is Spark SQL that is true for
    events with which a match may begin; None if a key's events matter though none begins.
    """

    pattern: Pattern | Threshold
    passed: tuple[tuple[str, str], ...]
    measured: tuple[tuple[str, str], ...]
    starts: str | None = None

    @property
    def outputs(self) -> tuple[tuple[str, str], ...]:
        return (*self.passed, *self.measured)


class CarryPlan(_Noun, frozen=True):
    """Steps that take the events of each key in order, with state. `sql` gives `_key`, `_time` and
    `_seq` of each event and the columns that go through; what comes out is the relation `name`.
    """

    name: str
    sql: str
    steps: tuple[StepPlan, ...] = ()
    processor: ProcessorPlan | None = None
    match: MatchPlan | None = None

    @property
    def made(self) -> tuple[tuple[str, str], ...] | None:
        """The columns and types of the rows, where they are new ones; None where events go
        through.
        """
        maker = self.processor or self.match
        return maker.outputs if maker else None


class JoinPlan(_Noun, frozen=True):
    """How far apart the events of a joined pair are: lower <= right's time - left's <= upper."""

    left: str  # the streams
    right: str
    lower_us: int
    upper_us: int
    # Spark SQL that counts outer rows which a late partner withdraws; empty without such rows.
    withdrawn: tuple[str, ...] = ()


class KernelPlan(_Noun, frozen=True):
    """The vectorised form of a view's partials: DuckDB's SQL over the decoded events and tables.
    Without it Spark SQL computes them, for the reason in `refused`.
    """

    sql: str = ""
    refused: str = ""


class ViewPlan(_Noun, frozen=True, dict=True):
    """How one view is kept and read. Every read asks for its fingerprints, so they are kept."""

    name: str
    kind: ViewKind
    origin: str
    outputs: tuple[OutputPlan, ...]
    stream: str = ""  # the flow: the stream, or the joined streams as "orders+payments"
    tables: tuple[str, ...] = ()
    carry: CarryPlan | None = None  # the fold whose relation `map_sql` reads, if there is one
    map_sql: str = ""
    keys: tuple[KeyPlan, ...] = ()
    partials: tuple[PartialPlan, ...] = ()
    calls: tuple[CallPlan, ...] = ()
    having: str | None = None
    order: tuple[str, ...] = ()
    limit: int | None = None
    reads: tuple[str, ...] = ()  # views
    read_sql: str = ""  # of one that is not kept: Spark SQL over `reads`
    inputs: str = ""  # fingerprint of the stream, tables and functions it reads
    join: JoinPlan | None = None
    definition: str = ""  # the whole SELECT with derived streams written out, for the audit
    kernel: KernelPlan = KernelPlan()

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams of its flow; none if it is read."""
        return stream_names(self.stream) if self.kept else ()

    @property
    def kept(self) -> bool:
        """Whether batch and speed keep rows of it."""
        return self.kind != ViewKind.READ

    @property
    def partial_sql(self) -> str:
        """Spark SQL: the events of the relation named after the stream -> partial columns by
        key. Those of a carried view begin with the group that the events belong to.
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

    @property
    def windowed(self) -> tuple[str, WindowPlan] | None:
        """The key column that is a window, and its windows."""
        return next(((key.column, key.window) for key in self.keys if key.window), None)

    @property
    def plain_keys(self) -> list[str]:
        """The key columns that are no window."""
        return [key.column for key in self.keys if not key.window]

    @property
    def joins(self) -> str | None:
        """The key column whose intervals become one where they touch, in a view of sessions."""
        return self.windowed[0] if self.windowed and self.windowed[1].joins else None

    @property
    def regroups(self) -> bool:
        """Whether the rows of an answer are other rows than those that are stored."""
        return bool(self.windowed and self.windowed[1].regroups)

    @property
    def counted(self) -> tuple[PartialPlan, ...]:
        """The partials whose values batch counts exactly."""
        return tuple(partial for partial in self.partials if partial.counted)

    @property
    def tells_lateness(self) -> bool:
        """Whether it is known of each window how late its events were."""
        return any(LATE in partial.columns for partial in self.partials)

    @property
    def rowwise(self) -> bool:
        """Whether each row of the answer follows from one merged row, whatever the others are."""
        return not self.order and self.limit is None

    @cached_property
    def recompute(self) -> str:
        """Fingerprint of what the view's partials depend on."""
        decisive = [self.kind, self.stream, self.keys, self.partials, self.map_sql, self.inputs]
        return digest([*decisive, self.carry] if self.carry else decisive)

    @cached_property
    def stored_name(self) -> str:
        """What its partials are stored under: two views may have the same, and each keeps its
        own.
        """
        return f"{self.name}_{self.recompute}"

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the whole view, as it is kept and as it is read. The kernel is left out:
        it changes no answer.
        """
        return digest(msgspec.structs.replace(self, origin="", kernel=KernelPlan()))

    def output(self, name: str) -> OutputPlan | None:
        return next((out for out in self.outputs if out.name.lower() == name.lower()), None)


class ColumnPlan(_Noun, frozen=True, array_like=True):
    """A declared column, and how an event holds it or what it is computed from."""

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


class StreamPlan(_Noun, frozen=True):
    """A source stream as its log, its master and its readers need it."""

    name: str
    columns: tuple[ColumnPlan, ...]
    format: str
    partitions: int
    watermark: tuple[str, int] | None = None  # column, delay in microseconds
    key: str | None = None
    id: str | None = None
    # How far ahead of its arrival an event may be dated and still move the watermark. It decides
    # on lateness, so it is the same for every reader and cannot be changed later.
    ahead_us: int = HOUR
    # After how much silence a partition no longer holds the watermark back that is told.
    idle_us: int = MINUTE
    pace: PaceDefinition = PaceDefinition()
    raw: bool = False  # whether a definition reads `_raw`, so that speed must deliver it

    @property
    def schema(self) -> Schema:
        return Schema(tuple(column.column for column in self.columns))


class TablePlan(_Noun, frozen=True):
    name: str
    ddl: str
    format: str
    location: str
    options: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of(t: TableDefinition) -> TablePlan:
        options = tuple(sorted(t.options.items()))
        return TablePlan(t.name, t.schema.spark_ddl, t.format, t.location, options)


class DerivedPlan(_Noun, frozen=True):
    """A stream made of others; `sql` reads the source streams' relations, or that of `carry`."""

    name: str
    stream: str  # the flow
    tables: tuple[str, ...]
    sql: str
    carry: CarryPlan | None = None


class SinkPlan(_Noun, frozen=True):
    """A view's panes on their way out."""

    name: str
    subscription: Subscription
    shape: ViewShape
    destination: Destination
    guarantee: Guarantee
    origin: str = ""


class RulePlan(_Noun, frozen=True):
    """What is done with the rows of the rule's hidden view."""

    name: str
    text: str
    columns: tuple[str, ...]  # what an alert says
    severity: str
    destinations: tuple[Destination, ...]
    suppress_us: int | None
    per: tuple[str, ...]
    coupling: str
    corrections: bool
    keys: tuple[str, ...] | None  # of a rule over views: what a row is known by; else None
    streams: tuple[str, ...]
    origin: str = ""
    session: str | None = None  # the key that is a session, which is the same one while it grows

    @property
    def view(self) -> str:
        return view_of(self.name)


class ShapePlan(_Noun, frozen=True):
    """One evaluation of all watches that differ in constants alone."""

    name: str
    sql: str  # with the constants taken out
    columns: tuple[str, ...]  # what a match says
    streams: tuple[str, ...]
    types: tuple[str, ...]  # of the constants
    bounds: tuple[tuple[int, str], ...]  # constants of which the weakest is known: min or max
    tables: tuple[str, ...]  # of the constants, and of their bounds

    @property
    def view(self) -> str:
        return watched_of(self.name)


class WatchPlan(_Noun, frozen=True):
    """A watch: its constants, when it ends, and whom it notifies."""

    name: str
    text: str
    shape: str
    constants: tuple[float | str, ...]
    severity: str
    destinations: tuple[Destination, ...]
    until_us: int | None
    matches_max: int | None
    origin: str = ""


class Plan(_Noun, frozen=True):
    """All that would run."""

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
        """The tables that the user gave."""
        return tuple(table for table in self.tables if not hidden(table.name))

    @property
    def shown_views(self) -> tuple[ViewPlan, ...]:
        """The views that the user knows of."""
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
