"""Lowers the parts of a view to its plan: types are known now, so storage types and partials are
chosen.

The types come from Spark's analyser, which is the parameter `Analyse`. tests/compile/test_lower.py
checks the plans; tests/laws/test_seam.py that they mean the same in both layers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from headrace.compile.calls import AggregateCall
from headrace.compile.plan import WINDOW, CallPlan, CarryPlan, KeyPlan, OutputPlan, PartialPlan
from headrace.compile.split import GroupKey, ViewParts
from headrace.compile.window_functions import OrderedWindow
from headrace.compile.windows import end_column
from headrace.core.aggregate import (
    AGGREGATES,
    Approximation,
    LoweredAggregate,
    Merge,
    Partial,
    largest_error,
)
from headrace.core.errors import BadDefinition, Unsupported
from headrace.core.event import CUT, SEQ, TIME
from headrace.core.origin import Origin
from headrace.core.schema import Type
from headrace.core.storage import Storage, storage_of
from headrace.define.dialect import sql_of

# SQL -> (column name, Spark type) of its result; raises with the user's file and line.
Analyse = Callable[[str, Origin], list[tuple[str, str]]]

# A window, the source, SQL of the other keys, and the items to pass through -> the window's fold.
Fold = Callable[[OrderedWindow, exp.Select, list[str], list[str]], CarryPlan]


@dataclass(frozen=True, slots=True)
class MapStep:
    """The map step of a view: one row per event, with the keys and the aggregates' arguments."""

    sql: str
    carry: CarryPlan | None
    keys: tuple[KeyPlan, ...]
    lowered: tuple[LoweredAggregate, ...]  # with lifts over the columns of the map step


class AggregateInputs:
    """The columns of the map step that aggregates read; equal expressions share one."""

    def __init__(self, letter: str) -> None:
        self.letter, self.columns = letter, dict[str, str]()

    def column(self, sql: str) -> str:
        return self.columns.setdefault(sql, f"{self.letter}{len(self.columns)}")

    @property
    def items(self) -> list[str]:
        return [f"{sql} AS {column}" for sql, column in self.columns.items()]


class Argument:
    """An argument of an aggregate: in a lift, {x} is the column of its value, and {x:stored} that
    of its stored form, and so on.
    """

    def __init__(self, sql: str, type: Type, inputs: AggregateInputs) -> None:
        storage = Storage(type)
        plain = f"({sql})" if " " in sql else sql
        self.forms: dict[str, Callable[[], str]] = {
            "": lambda: plain,
            "stored": lambda: storage.sql(sql),
            "key": lambda: storage.key_sql(sql),
            "part": lambda: storage.part(sql),
            "key_part": lambda: storage.key_part(sql),
        }
        self.inputs, self.used = inputs, list[str]()

    def __format__(self, form: str) -> str:
        column = self.inputs.column(self.forms[form]())
        self.used.append(column)
        return column

    @property
    def known(self) -> str:
        """SQL: the argument is not NULL; all of its forms agree on that."""
        return f"{self.used[0] if self.used else format(self)} IS NOT NULL"


def lower_map(
    parts: ViewParts,
    source: exp.Select,
    rows: exp.Select,
    place: str,
    time: str | None,
    analyse: Analyse,
    origin: Origin,
    *,
    cut: str | None,
    fold: Fold,
    also: Sequence[str] = (),
) -> MapStep:
    """Choose storage forms and write the map step.

    `rows` are the new rows of the source; `place` and `time` are SQL of a row's position in the log
    and of its event time, if known; `cut` that of its group, if the source is a fold's relation.
    `fold` makes the fold of a window that needs ordered events; `also` are additional items.
    """
    expressions = _distinct_expressions(parts)
    probe = select_of(source, [f"{sql} AS e{n}" for n, sql in enumerate(expressions)] or ["1 AS e"])
    types = {
        sql: known_type(spark_type, sql, origin)
        for sql, (_, spark_type) in zip(expressions, analyse(probe, origin), strict=False)
    }
    keys = tuple(_key(n, group, types, origin) for n, group in enumerate(parts.groups))
    inputs, conditions = AggregateInputs("a"), AggregateInputs("f")
    lowered = tuple(_lower_call(call, types, inputs, conditions, origin) for call in parts.calls)
    plain = [key for key, group in zip(keys, parts.groups, strict=True) if not group.ordered]
    items = [item for key in plain for item in _key_items(key)]
    items += [*inputs.items, *conditions.items]
    order = _order(lowered, place, time, origin)
    items += also
    carry = None
    if ordered := next((group.ordered for group in parts.groups if group.ordered), None):
        if cut:
            raise Unsupported(
                "count_window and punctuated_window cannot read a stream with running aggregates",
                hint="use a stream without OVER for the window.",
                origin=origin,
            )
        if ordered.condition:
            _check_condition(ordered.condition, source, analyse, origin)
        carry = fold(ordered, source, [key.sql for key in plain], items)
        names = [item.rpartition(" AS ")[2] for item in items]
        counted = [f"{key.sql} AS {key.column}" for key in keys if key not in plain]
        sql = f"SELECT {', '.join([*names, *counted, TIME, SEQ, CUT])} FROM {carry.name}"
    else:
        items += [*order, *([f"{cut} AS {CUT}"] if cut else [])]
        windowed = [key.window.holds(key.column) for key in plain if key.window]
        sql = select_of(rows, items or ["1 AS one"], windowed)
    return MapStep(sql, carry, keys, lowered)


def _check_condition(sql: str, source: exp.Select, analyse: Analyse, origin: Origin) -> None:
    """The condition that ends a window is BOOLEAN; a number is not converted."""
    [(_, spark_type)] = analyse(select_of(source, [f"{sql} AS e"]), origin)
    if spark_type not in {"boolean", "void"}:
        raise Unsupported(
            f"the condition of punctuated_window must be BOOLEAN, but '{sql}' is "
            f"{spark_type.upper()}",
            hint=f"write a comparison, such as punctuated_window({sql} = …).",
            origin=origin,
        )


def _order(
    lowered: tuple[LoweredAggregate, ...], place: str, time: str | None, origin: Origin
) -> list[str]:
    """Select items of the event's position and time, if a lift uses them."""
    lifts = " ".join(lift for call in lowered for part in call.partials for lift in part.lifts)
    if "_time" in lifts and time is None:
        raise Unsupported(
            "first and last require the event time, but the derived stream does not select it",
            hint="select the watermark's column in the derived stream, or use min_by and max_by.",
            origin=origin,
        )
    places = {SEQ: place, TIME: time}
    return [f"{sql} AS {name}" for name, sql in places.items() if name in lifts]


def lower_partials(parts: ViewParts, mapped: MapStep) -> tuple[list[PartialPlan], list[CallPlan]]:
    """The partial columns, each kind once however many aggregates share it, and the calls."""
    partials = _ends(mapped.keys)
    regroups = any(key.window and key.window.regroups for key in mapped.keys)
    calls: list[CallPlan] = []
    for call, lowered in zip(parts.calls, mapped.lowered, strict=True):
        columns: list[str] = []
        for partial in lowered.partials:
            # Counts of rows that are regrouped when read cannot be added, so sketches are used.
            counts = partial.merge is Merge.COUNTED and not regroups
            counted = partial.counts if counts else None
            shared = partials.setdefault(
                (*partial.lifts, counted or ""), _partial(len(partials), partial, counted)
            )
            columns += shared.columns
        finish, cut = lowered.finish.format(*columns), lowered.cut.format(*columns)
        whole = call.arguments == ("1",) and call.condition is None
        name, type = f"c{len(calls)}", lowered.type.spark
        calls.append(CallPlan(name, call.name, type, finish, whole, cut))
    return list(partials.values()), calls


def lower_finish(expression: exp.Expr) -> str:
    """Spark SQL over the columns of keys and calls for an expression with placeholders."""

    def fill(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        kind, _, number = node.name.partition("_")
        if kind in {"start", "end"}:
            return exp.column(kind, table=f"k{number}")
        return exp.column(f"{'k' if kind == 'key' else 'c'}{number}")

    return sql_of(expression.copy().transform(fill))


def lower_output(name: str, expression: exp.Expr, parts: ViewParts, mapped: MapStep) -> OutputPlan:
    """One output column, with its estimation error; its type is set later."""
    key = _placeholder(expression, "key")
    return OutputPlan(
        name,
        "",
        lower_finish(expression),
        key=mapped.keys[key].column if key is not None else None,
        estimate=_estimate(expression, parts),
    )


def _placeholder(expression: exp.Expr, kind: str) -> int | None:
    found = isinstance(expression, exp.Column) and expression.name.startswith(kind + "_")
    return int(expression.name.partition("_")[2]) if found else None


def _estimate(expression: exp.Expr, parts: ViewParts) -> Approximation | None:
    numbers = [_placeholder(column, "call") for column in expression.find_all(exp.Column)]
    names = {parts.calls[number].name for number in numbers if number is not None}
    rough = largest_error(AGGREGATES[name].estimate for name in names)
    # Rows that are regrouped when read have no exact counts, only sketches.
    regroups = any(group.window and group.window.regroups for group in parts.groups)
    return replace(rough, when="always") if rough and regroups else rough


def _distinct_expressions(parts: ViewParts) -> list[str]:
    arguments = [argument for call in parts.calls for argument in call.arguments]
    groups = [group.sql for group in parts.groups if not group.ordered]
    return list(dict.fromkeys([*groups, *arguments]))


def select_of(source: exp.Select, items: list[str], conditions: list[str] | None = None) -> str:
    """The FROM, joins, laterals and WHERE of the source with another select list."""
    kept = {k: v.copy() if isinstance(v, exp.Expr) else v for k, v in source.args.items()}
    bare = exp.Select(
        **{k: kept[k] for k in ("from_", "joins", "laterals", "where") if kept.get(k)}
    )
    inner = f"SELECT {', '.join(items)} FROM{sql_of(bare).partition('FROM')[2]}"
    return f"SELECT * FROM ({inner}) WHERE {' AND '.join(conditions)}" if conditions else inner


def _key(number: int, group: GroupKey, types: dict[str, Type], origin: Origin) -> KeyPlan:
    if group.ordered:
        key_sql = group.ordered.key_sql
        return KeyPlan(f"k{number}", group.name, "BIGINT", key_sql, group.window)
    type = types[group.sql]
    if not Storage(type).groups:
        raise Unsupported(
            f"cannot group by '{group.sql}' of type {type.spark}",
            hint=f"group by a field of it, such as {group.sql}:kind::string.",
            origin=origin,
        )
    if not group.window:
        return KeyPlan(f"k{number}", group.name, type.spark, Storage(type).key_sql(group.sql))
    if type.name not in {"TIMESTAMP", "TIMESTAMP_NTZ"}:
        raise Unsupported(
            f"a window requires a TIMESTAMP, but '{group.sql}' is {type.name}", origin=origin
        )
    start = group.window.key_sql(Storage(type).sql(group.sql))
    return KeyPlan(f"k{number}", group.name, WINDOW, start, group.window)


def _key_items(key: KeyPlan) -> list[str]:
    """A key in the map step."""
    return key.window.items(key.sql, key.column) if key.window else [f"{key.sql} AS {key.column}"]


def _ends(keys: tuple[KeyPlan, ...]) -> dict[tuple[str, ...], PartialPlan]:
    """A session's end is merged like an aggregate: the latest of its events' ends."""
    ends = [end_column(key.column) for key in keys if key.window and key.window.joins]
    return {
        (end,): PartialPlan(Merge.MAX.value, (end,), ("INTEGER",), (f"max({end})",)) for end in ends
    }


def _lower_call(
    call: AggregateCall,
    types: dict[str, Type],
    inputs: AggregateInputs,
    conditions: AggregateInputs,
    origin: Origin,
) -> LoweredAggregate:
    aggregate = AGGREGATES[call.name]
    given = tuple(types[argument] for argument in call.arguments)
    lowered = aggregate.lower(given, call.parameters)
    if lowered is None:
        text = ", ".join(type.spark for type in given)
        raise Unsupported(
            f"{call.name} does not accept {text}",
            hint=f"{call.name} accepts {aggregate.takes}.",
            origin=origin,
        )
    arguments = [Argument(sql, types[sql], inputs) for sql in call.arguments]
    names = {"x": arguments[0], "y": arguments[-1]}
    condition = conditions.column(f"({call.condition})") if call.condition else None
    return replace(lowered, partials=_lifted(lowered.partials, call, names, condition))


def _lifted(
    partials: tuple[Partial, ...],
    call: AggregateCall,
    names: dict[str, Argument],
    condition: str | None,
) -> tuple[Partial, ...]:
    """The partials with their lifts written out."""
    for lift in (lift for partial in partials for lift in partial.lifts):
        lift.format(when="", **names)  # registers the forms of the arguments
    when = _when(call, names, condition)
    return tuple(
        replace(
            partial,
            lifts=tuple(lift.format(when=when, **names) for lift in partial.lifts),
            counts=_counted(partial, names, condition),
        )
        for partial in partials
    )


def known_type(spark_type: str, sql: str, origin: Origin) -> Type:
    """Our type for a Spark type; Unsupported if a view cannot store it."""
    if spark_type == "void":
        return Type("INT")
    try:
        type = Type.of(spark_type)
    except BadDefinition:
        type = None
    if type is None or storage_of(type) is None:
        raise Unsupported(f"a view cannot store '{sql}' of type {spark_type}", origin=origin)
    return type


def _when(call: AggregateCall, names: dict[str, Argument], condition: str | None) -> str:
    conditions = [condition] if condition else []
    # NULLs are ignored; inside a struct they would not be.
    needs = AGGREGATES[call.name].needs
    conditions += [names[n].known if n in names else f"{n} IS NOT NULL" for n in needs]
    return f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""


def _counted(partial: Partial, names: dict[str, Argument], condition: str | None) -> str:
    if partial.merge is not Merge.COUNTED:
        return ""
    value = partial.counts.format(**names)
    return f"CASE WHEN {condition} THEN {value} END" if condition else value


def _partial(number: int, partial: Partial, counted: str | None) -> PartialPlan:
    storages = partial.storages
    single = len(storages) == 1
    columns = tuple(f"p{number}" if single else f"p{number}_{n}" for n in range(len(storages)))
    return PartialPlan(partial.merge.value, columns, storages, partial.lifts, counted)
