"""From the parts of a view to its plan: types are known now, so storage forms and partials are
chosen.

The types come from Spark's analyser, handed in as `Analyse`, so that compiling needs no JVM of
its own and nothing here guesses. tests/compile/test_lower.py checks the plans;
tests/laws/test_seam.py that they mean the same in both layers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from headrace.compile.plan import WINDOW, KeyPlan, OutputPlan, PartialPlan
from headrace.compile.split import Call, Group, Split
from headrace.core.aggregate import AGGREGATES, Lowered, Merge
from headrace.core.errors import Unsupported
from headrace.core.origin import Origin
from headrace.core.schema import Type
from headrace.define.dialect import parse_query, sql_of

# SQL -> (column name, Spark type) of its result; raises with the user's file and line.
Analyse = Callable[[str, Origin], list[tuple[str, str]]]

_SPARK_TYPES = {
    "string": "STRING", "boolean": "BOOLEAN", "tinyint": "INT", "smallint": "INT", "int": "INT",
    "bigint": "BIGINT", "float": "DOUBLE", "double": "DOUBLE", "timestamp": "TIMESTAMP",
    "timestamp_ntz": "TIMESTAMP", "date": "DATE",
}  # fmt: skip
_STORAGE_FORMS = {
    "TIMESTAMP": "unix_micros({})",
    "DATE": "unix_date({})",
    "BOOLEAN": "cast({} as int)",
    "DOUBLE": "cast({} as double)",
}


@dataclass(frozen=True, slots=True)
class Mapped:
    """The map step of a view: one row an event, with the keys and the aggregates' arguments."""

    sql: str
    keys: tuple[KeyPlan, ...]
    lowered: tuple[Lowered, ...]
    arguments: tuple[tuple[str, ...], ...]
    conditions: tuple[str | None, ...]


def type_of(spark_type: str) -> Type | None:
    """Ours for Spark's; decimals are kept as DOUBLE."""
    if spark_type.startswith("decimal"):
        return Type("DOUBLE")
    name = _SPARK_TYPES.get(spark_type)
    return Type(name) if name else None


def lower_map(
    parts: Split,
    source: exp.Select,
    rows: exp.Select,
    place: str,
    analyse: Analyse,
    origin: Origin,
) -> Mapped:
    """Choose storage forms and write the map step.

    `rows` are the source's rows that are new, and `place` is SQL of a row's place in the log.
    """
    expressions = _distinct_expressions(parts)
    probe = _select(source, [f"{sql} AS e{n}" for n, sql in enumerate(expressions)] or ["1 AS e"])
    types = {
        sql: _known_type(spark_type, sql, origin)
        for sql, (_, spark_type) in zip(expressions, analyse(probe, origin), strict=False)
    }
    keys = tuple(_key(n, group, types, origin) for n, group in enumerate(parts.groups))
    lowered = tuple(_lower_call(call, types, origin) for call in parts.calls)
    inputs = [a for call in parts.calls for a in call.arguments]
    columns = {sql: f"a{n}" for n, sql in enumerate(dict.fromkeys(inputs))}
    filters = [call.condition for call in parts.calls if call.condition]
    conditions = {sql: f"f{n}" for n, sql in enumerate(dict.fromkeys(filters))}
    items = [f"{key.sql} AS {key.column}" for key in keys]
    items += [f"{_storage_form(types[sql], sql)} AS {name}" for sql, name in columns.items()]
    items += [f"({sql}) AS {name}" for sql, name in conditions.items()]
    if any(call.name in {"min_by", "max_by"} for call in parts.calls):
        items.append(f"{place} AS _seq")
    windowed = [f"{key.column} IS NOT NULL" for key in keys if key.window_us]
    return Mapped(
        _select(rows, items or ["1 AS one"], windowed),
        keys,
        lowered,
        tuple(tuple(columns[a] for a in call.arguments) for call in parts.calls),
        tuple(conditions[call.condition] if call.condition else None for call in parts.calls),
    )


def lower_partials(parts: Split, mapped: Mapped) -> tuple[list[PartialPlan], list[str]]:
    """The partial columns, each kind once however many aggregates share it, and each call's
    finish.
    """
    partials: dict[tuple[str, ...], PartialPlan] = {}
    finishes = []
    for call, lowered, arguments, condition in zip(
        parts.calls, mapped.lowered, mapped.arguments, mapped.conditions, strict=True
    ):
        columns: list[str] = []
        for partial in lowered.partials:
            when = _when(call, arguments, condition)
            names = {"x": arguments[0], "y": arguments[-1], "when": when}
            lifts = tuple(lift.format(**names) for lift in partial.lifts)
            counted = _counted(call, arguments[0], condition)
            shared = partials.setdefault(
                (*lifts, counted or ""),
                _partial(len(partials), partial.merge, partial.storages, lifts, counted),
            )
            columns += shared.columns
        finishes.append(lowered.finish.format(*columns))
    return list(partials.values()), finishes


def lower_finish(expression: exp.Expr, finishes: list[str], keys: tuple[KeyPlan, ...]) -> str:
    """SQL over key and partial columns for an expression with placeholders."""

    def fill(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        kind, _, number = node.name.partition("_")
        if kind == "key":
            return exp.column(keys[int(number)].column)
        inner = parse_query(f"SELECT {finishes[int(number)]}", Origin("finish", 1))
        return exp.paren(inner.expressions[0], copy=False)

    return sql_of(expression.copy().transform(fill))


def lower_output(
    name: str, expression: exp.Expr, spark_type: str, parts: Split, mapped: Mapped, finish: str
) -> OutputPlan:
    """One output column with its type and what is known about its exactness."""
    key = _placeholder(expression, "key")
    plan = mapped.keys[key] if key is not None else None
    type = WINDOW if plan and plan.window_us else (type_of(spark_type) or Type("STRING")).name
    return OutputPlan(
        name,
        type,
        finish,
        key=plan.column if plan else None,
        window_us=plan.window_us if plan else None,
        estimate=_estimate(expression, parts),
    )


def _placeholder(expression: exp.Expr, kind: str) -> int | None:
    found = isinstance(expression, exp.Column) and expression.name.startswith(kind + "_")
    return int(expression.name.partition("_")[2]) if found else None


def _estimate(expression: exp.Expr, parts: Split) -> str | None:
    numbers = [_placeholder(column, "call") for column in expression.find_all(exp.Column)]
    names = {parts.calls[number].name for number in numbers if number is not None}
    if "approx_count_distinct" in names:
        return "always"
    return "speed" if "count_distinct" in names else None


def _distinct_expressions(parts: Split) -> list[str]:
    arguments = [argument for call in parts.calls for argument in call.arguments]
    return list(dict.fromkeys([*(group.sql for group in parts.groups), *arguments]))


def _select(source: exp.Select, items: list[str], conditions: list[str] | None = None) -> str:
    """The FROM, joins, laterals and WHERE of the source with another select list."""
    kept = {k: v.copy() if isinstance(v, exp.Expr) else v for k, v in source.args.items()}
    bare = exp.Select(
        **{k: kept[k] for k in ("from_", "joins", "laterals", "where") if kept.get(k)}
    )
    inner = f"SELECT {', '.join(items)} FROM{sql_of(bare).partition('FROM')[2]}"
    return f"SELECT * FROM ({inner}) WHERE {' AND '.join(conditions)}" if conditions else inner


def _key(number: int, group: Group, types: dict[str, Type], origin: Origin) -> KeyPlan:
    type = types[group.sql]
    if type.array:
        raise Unsupported(f"'{group.sql}' is an array, which cannot be grouped by", origin=origin)
    if not group.window_us:
        return KeyPlan(f"k{number}", group.name, type.name, _storage_form(type, group.sql))
    if type.name != "TIMESTAMP":
        raise Unsupported(
            f"window() takes a TIMESTAMP, and '{group.sql}' is {type.name}", origin=origin
        )
    time = f"unix_micros({group.sql})"
    start = f"({time} - pmod({time}, {group.window_us}))"
    return KeyPlan(f"k{number}", group.name, WINDOW, start, group.window_us)


def _lower_call(call: Call, types: dict[str, Type], origin: Origin) -> Lowered:
    aggregate = AGGREGATES[call.name]
    given = tuple(types[argument] for argument in call.arguments)
    lowered = aggregate.lower(given)
    if lowered is None:
        text = ", ".join(type.spark for type in given)
        raise Unsupported(
            f"{call.name} does not take {text}", hint=f"it takes {aggregate.takes}.", origin=origin
        )
    return lowered


def _known_type(spark_type: str, sql: str, origin: Origin) -> Type:
    if spark_type == "void":
        return Type("INT")
    if type := type_of(spark_type):
        return type
    if spark_type.startswith("array"):
        return Type("STRING", array=True)
    raise Unsupported(f"'{sql}' is of type {spark_type}, which a view cannot hold", origin=origin)


def _storage_form(type: Type, sql: str) -> str:
    return _STORAGE_FORMS.get(type.name, "({})" if " " in sql else "{}").format(sql)


def _when(call: Call, arguments: tuple[str, ...], condition: str | None) -> str:
    conditions = [condition] if condition else []
    # An order that is NULL takes no part; inside a struct it would.
    conditions += [f"{arguments[1]} IS NOT NULL"] if call.name in {"min_by", "max_by"} else []
    return f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""


def _counted(call: Call, argument: str, condition: str | None) -> str | None:
    if call.name != "count_distinct":
        return None
    return f"CASE WHEN {condition} THEN {argument} END" if condition else argument


def _partial(
    number: int,
    merge: Merge,
    storages: tuple[str, ...],
    lifts: tuple[str, ...],
    counted: str | None,
) -> PartialPlan:
    single = len(storages) == 1
    columns = tuple(f"p{number}" if single else f"p{number}_{n}" for n in range(len(storages)))
    return PartialPlan(merge.value, columns, storages, lifts, counted)
