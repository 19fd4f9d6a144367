"""Compiles OVER (…) to the steps of a fold.

A carried stream has three parts: `CarryPlan.sql` selects each event with its key, its order and the
columns that are needed; each step adds one column; `select` computes the stream's rows from them.
Views read `select` instead of the stream. tests/transcripts/running_*.yaml define the semantics,
tests/plans/error_spark_over_*.sql what is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from headrace.compile.fold_inputs import carried_sql, carried_type, require_event_time
from headrace.compile.lower import Analyse, select_of
from headrace.compile.plan import CarryPlan, StepPlan
from headrace.compile.resolve import ResolvedQuery
from headrace.compile.window_functions import ENDS, OrderedWindow
from headrace.core.errors import Unsupported
from headrace.core.event import CUT, HIDDEN, KEY, OFFSET, PARTITION, SEQ, TIME
from headrace.core.origin import Origin
from headrace.core.schema import Type
from headrace.core.steps import STEPS
from headrace.define.dialect import parse_select, sql_of

STEP_NAMES = ", ".join(STEPS)
_NODES: dict[type[exp.Expr], str] = {
    exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max",
    exp.RowNumber: "row_number", exp.FirstValue: "first_value", exp.LastValue: "last_value",
    exp.Lag: "lag",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CarriedStream:
    """A carried stream: its plan, the SELECT of its rows, and the DDL of the plan's relation."""

    plan: CarryPlan
    select: exp.Select
    ddl: str


@dataclass(frozen=True, slots=True)
class EventOrder:
    """The order of a fold's events: SQL of the key columns and of the event time."""

    keys: tuple[str, ...]
    time: str
    alias: str

    def items(self) -> list[str]:
        """The select items of every event that the fold needs."""
        parts = ", ".join(self.keys) or "1"
        key = f"to_json(struct({parts}), map('ignoreNullFields', 'false'))"
        place = f"{self.alias}.{OFFSET} * 65536 + {self.alias}.{PARTITION}"
        return [f"{key} AS {KEY}", f"{self.time} AS {TIME}", f"{place} AS {SEQ}"]


def is_carried(resolved: ResolvedQuery) -> bool:
    """Whether a derived stream needs its events in order."""
    definition = resolved.definition
    running = definition.kind == "stream" and resolved.select.find(exp.Window) is not None
    return running or definition.makes_rows


@dataclass(slots=True)
class CarryCompiler:
    """Compiles a stream with OVER."""

    resolved: ResolvedQuery
    source: exp.Select  # its SELECT with the streams below inlined
    time: str | None  # the event time column of its stream
    name: str  # the relation of the fold's rows
    analyse: Analyse
    inputs: dict[str, str] = field(default_factory=dict)  # SQL over an event -> column of the fold
    steps: dict[str, StepPlan] = field(default_factory=dict)  # text of a call -> its step

    @property
    def origin(self) -> Origin:
        return self.resolved.definition.query_origin

    def compile(self) -> CarriedStream:
        order = self.order()
        items = [self.item(expression) for expression in self.expressions()]
        hidden = [f"{order.alias}.{column} AS {column}" for column in HIDDEN]
        columns = [f"{sql} AS {column}" for sql, column in self.inputs.items()]
        sql = select_of(self.source, [*order.items(), *hidden, *columns], [f"{TIME} IS NOT NULL"])
        plan = CarryPlan(self.name, sql, tuple(self.steps.values()))
        return carried_rows(plan, [*items, *HIDDEN, CUT], self.analyse, self.origin)

    def expressions(self) -> list[exp.Expr]:
        """The select items, with stars expanded."""
        found: list[exp.Expr] = []
        for item in self.source.expressions:
            if not item.is_star:
                found.append(item)
                continue
            star = self.analyse(select_of(self.source, [sql_of(item)]), self.origin)
            found += [exp.column(name) for name, _ in star if not name.startswith("_")]
        return found

    def item(self, item: exp.Expr) -> str:
        """The item after the fold: a call becomes its step's column, the rest is passed through."""
        name = item.alias_or_name
        if not name:
            raise self.unsupported(f"'{sql_of(item)}' has no name", "give it one with AS.")
        if item.find(exp.Window) is None:
            return f"{self.input(sql_of(item.unalias()))} AS `{name}`"
        return f"{sql_of(item.unalias().transform(self.after))} AS `{name}`"

    def after(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Window):
            return exp.column(self.step(node).output)
        if isinstance(node, exp.Column):
            return exp.column(self.input(sql_of(node)))
        return node

    def input(self, sql: str) -> str:
        return self.inputs.setdefault(sql, f"c{len(self.inputs)}")

    def step(self, call: exp.Window) -> StepPlan:
        text = sql_of(call)
        if text not in self.steps:
            self.steps[text] = self.new_step(call.this)
        return self.steps[text]

    def new_step(self, function: exp.Expr) -> StepPlan:
        anonymous = isinstance(function, exp.Anonymous)
        name = function.name.lower() if anonymous else _NODES.get(function.__class__, function.key)
        step = STEPS.get(name)
        if step is None:
            raise self.unsupported(
                f"{name} is not supported with OVER", f"use one of {STEP_NAMES}."
            )
        arguments = _arguments(function)
        columns, parameters = arguments[: step.columns], arguments[step.columns :]
        if len(arguments) != (count := step.columns + step.parameters):
            noun = "argument" if count == 1 else "arguments"
            raise self.unsupported(f"{name} expects {count} {noun}, got {len(arguments)}")
        types = tuple(self.type_of(argument) for argument in columns)
        type = step.returns(types)
        if type is None:
            raise self.unsupported(
                f"{name} does not accept {', '.join(t.spark for t in types)}",
                f"{name} accepts {step.takes}.",
            )
        names = tuple(
            self.input(carried_sql(t, sql_of(argument)))
            for t, argument in zip(types, columns, strict=True)
        )
        numbers = tuple(self.weight(name, parameter) for parameter in parameters)
        return StepPlan(name, names, numbers, f"w{len(self.steps)}", type.spark)

    def type_of(self, argument: exp.Expr) -> Type:
        sql = sql_of(argument)
        [(_, spark_type)] = self.analyse(select_of(self.source, [f"{sql} AS e"]), self.origin)
        return carried_type(spark_type, sql, self.origin)

    def weight(self, name: str, parameter: exp.Expr) -> float:
        try:
            value = float(parameter.name)
        except ValueError:
            value = 0.0
        if not 0 < value <= 1:
            raise self.unsupported(
                f"the weight of {name} must be above 0 and at most 1, got {sql_of(parameter)}"
            )
        return value

    def order(self) -> EventOrder:
        calls = [call for item in self.source.expressions for call in item.find_all(exp.Window)]
        require_event_time(self.resolved, self.time)
        keys = {tuple(sql_of(part) for part in _partition(call)) for call in calls}
        if len(keys) > 1:
            raise self.unsupported(
                f"stream '{self.resolved.definition.name}' uses two different PARTITION BY lists",
                "define a stream for each of them.",
            )
        for call in calls:
            self.check_order(call)
        return EventOrder(keys.pop(), f"unix_micros({self.time_sql()})", self.resolved.stream_alias)

    def time_sql(self) -> str:
        return f"{self.resolved.stream_alias}.{self.time}"

    def check_order(self, call: exp.Window) -> None:
        order = call.args.get("order")
        found = (
            [sql_of(item.this).split(".")[-1].lower() for item in order.expressions]
            if order
            else []
        )
        descending = bool(order and any(item.args.get("desc") for item in order.expressions))
        if found != [str(self.time).lower()] or descending or call.args.get("spec"):
            raise self.unsupported(
                f"'{sql_of(call)}' is not ordered by event time",
                f"write OVER (PARTITION BY … ORDER BY {self.time}) without a frame.",
            )

    def unsupported(self, message: str, hint: str | None = None) -> Unsupported:
        return Unsupported(message, hint=hint, origin=self.origin)


def window_fold(
    name: str, time: str | None, alias: str
) -> Callable[[OrderedWindow, exp.Select, list[str], list[str]], CarryPlan]:
    """The fold between the map and the aggregates of a view whose window needs ordered events."""

    def fold(
        window: OrderedWindow, source: exp.Select, keys: list[str], items: list[str]
    ) -> CarryPlan:
        time_us = f"unix_micros({alias}.{time})" if time else "0"
        order = EventOrder(tuple(keys), time_us, alias)
        place = [f"{alias}.{PARTITION} AS {PARTITION}", f"{alias}.{OFFSET} AS {OFFSET}"]
        ends = [f"cast(({window.condition}) as boolean) AS {ENDS}"] if window.condition else []
        sql = select_of(source, [*order.items(), *place, *ends, *items], [f"{TIME} IS NOT NULL"])
        return CarryPlan(name, sql, (window.step,))

    return fold


def carried_rows(
    plan: CarryPlan, items: Sequence[str], analyse: Analyse, origin: Origin
) -> CarriedStream:
    """A carried stream that selects these items from the fold's relation."""
    select = parse_select(f"SELECT {', '.join(items)} FROM {plan.name}", origin)
    return CarriedStream(plan, select, relation_ddl(plan, analyse, origin))


def relation_ddl(plan: CarryPlan, analyse: Analyse, origin: Origin) -> str:
    """The DDL of the fold's relation, for Spark's analyser."""
    passed = analyse(plan.sql, origin)
    made = [(step.output, step.type) for step in plan.steps]
    if plan.made is not None:
        passed = [(name, type) for name, type in passed if name in (*HIDDEN, TIME)]
        made = list(plan.made)
    columns = [*passed, *made, (CUT, "int")]
    return ", ".join(f"`{name}` {type}" for name, type in columns)


def _arguments(function: exp.Expr) -> list[exp.Expr]:
    if isinstance(function, exp.Anonymous):
        return list(function.expressions)
    if isinstance(function.this, exp.Star):
        return [exp.Literal.number(1)]
    rest = [function.args.get(name) for name in ("offset", "default", "expression")]
    return [argument for argument in (function.this, *rest) if isinstance(argument, exp.Expr)]


def _partition(call: exp.Window) -> list[exp.Expr]:
    return list(call.args.get("partition_by") or [])
