"""What is decided about a project: printable, comparable, and kept with what it has built.

A plan says everything that batch, speed and serving need; none of them reads definitions. Two
texts that differ only in formatting give equal plans. `recompute` is the fingerprint of what
decides a view's partials: while it stays, a changed view needs no rebuild.
tests/compile/test_plan.py checks both.
"""

from __future__ import annotations

import hashlib

import msgspec

from headrace.core.schema import Column, Schema, Type

WINDOW = "WINDOW"  # the type of a window in an answer: {"start": …, "end": …}


class _Noun(msgspec.Struct, frozen=True):
    """Plans are stored as JSON, so their nouns are msgspec structs."""


class KeyPlan(_Noun, frozen=True):
    """One column that a view is grouped by. `sql` gives it in storage form."""

    column: str
    name: str
    type: str
    sql: str
    window_us: int | None = None


class PartialPlan(_Noun, frozen=True):
    """Partial columns that are merged together, and the Spark SQL that lifts them."""

    merge: str
    columns: tuple[str, ...]
    storages: tuple[str, ...]
    lifts: tuple[str, ...]
    # Spark SQL for the values whose exact number batch counts, for count(DISTINCT).
    counted: str | None = None


class OutputPlan(_Noun, frozen=True):
    """One column of the answer: `finish` is SQL over key and partial columns."""

    name: str
    type: str
    finish: str
    key: str | None = None  # the key column, where the output is one
    window_us: int | None = None
    estimate: str | None = None  # None: always exact; "speed": until batch covers it; "always"


class JoinPlan(_Noun, frozen=True):
    """How far apart the events of a joined pair are: lower <= right's time - left's <= upper."""

    left: str  # the streams
    right: str
    lower_us: int
    upper_us: int
    # Spark SQL that counts outer rows which a late partner withdraws; empty without such rows.
    withdrawn: tuple[str, ...] = ()


class ViewPlan(_Noun, frozen=True):
    """How one view is kept and read."""

    name: str
    kind: str  # "mergeable", or "read": derived from other views when read
    origin: str
    outputs: tuple[OutputPlan, ...]
    stream: str = ""  # the flow: the stream, or the joined streams as "orders+payments"
    tables: tuple[str, ...] = ()
    map_sql: str = ""
    keys: tuple[KeyPlan, ...] = ()
    partials: tuple[PartialPlan, ...] = ()
    having: str | None = None
    order: tuple[str, ...] = ()
    limit: int | None = None
    reads: tuple[str, ...] = ()  # views
    read_sql: str = ""  # for kind "read": SQL over the typed answers of `reads`
    inputs: str = ""  # fingerprint of the stream, tables and functions it reads
    join: JoinPlan | None = None
    definition: str = ""  # the whole SELECT with derived streams written out, for the audit

    @property
    def partial_sql(self) -> str:
        """Spark SQL: the events of the relation named after the stream -> partial columns by
        key.
        """
        keys = [key.column for key in self.keys]
        lifts = [
            f"{lift} AS {column}"
            for partial in self.partials
            for lift, column in zip(partial.lifts, partial.columns, strict=False)
        ]
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {', '.join([*keys, *lifts])} FROM ({self.map_sql}) AS mapped{group}"

    @property
    def counted(self) -> tuple[PartialPlan, ...]:
        """The partials whose values batch counts exactly."""
        return tuple(partial for partial in self.partials if partial.counted)

    @property
    def recompute(self) -> str:
        """Fingerprint of what the view's partials depend on."""
        return digest([self.kind, self.stream, self.keys, self.partials, self.map_sql, self.inputs])

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the whole view, as it is kept and as it is read."""
        return digest(msgspec.structs.replace(self, origin=""))

    def output(self, name: str) -> OutputPlan | None:
        return next((out for out in self.outputs if out.name.lower() == name.lower()), None)


class StreamPlan(_Noun, frozen=True):
    """A source stream as its log, its master and its readers need it."""

    name: str
    columns: tuple[tuple[str, str, bool], ...]  # name, type, nullable
    format: str
    partitions: int
    watermark: tuple[str, int] | None = None  # column, delay in microseconds
    key: str | None = None
    id: str | None = None

    @property
    def schema(self) -> Schema:
        return Schema(tuple(Column(n, Type.parse(t), nullable) for n, t, nullable in self.columns))


class TablePlan(_Noun, frozen=True):
    name: str
    ddl: str
    format: str
    location: str
    options: tuple[tuple[str, str], ...] = ()


class DerivedPlan(_Noun, frozen=True):
    """A stream made of others by stateless steps and joins; `sql` reads the source streams'
    relations.
    """

    name: str
    stream: str  # the flow
    tables: tuple[str, ...]
    sql: str


class Plan(_Noun, frozen=True):
    """All that would run."""

    name: str
    streams: tuple[StreamPlan, ...]
    tables: tuple[TablePlan, ...]
    derived: tuple[DerivedPlan, ...]
    views: tuple[ViewPlan, ...]

    def stream(self, name: str) -> StreamPlan:
        return next(stream for stream in self.streams if stream.name == name)

    def view(self, name: str) -> ViewPlan | None:
        return next((view for view in self.views if view.name.lower() == name.lower()), None)


def digest(value: object) -> str:
    """A short fingerprint of any plain value."""
    return hashlib.sha256(msgspec.json.encode(value)).hexdigest()[:12]
