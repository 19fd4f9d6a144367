"""One row of a view, identified by its keys; and the positions of its events in the log.

A row's events are found by the view's own definition, grouped also by the place of each event: a
pair (key, position) in its result means that this event counts in this row. The row, the position
and the history are read in one transaction. tests/audit/test_why.py checks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import msgspec
from sqlglot import exp

from headrace.audit.compare import narrowed, values_equal
from headrace.audit.duck import oracle_sql
from headrace.audit.oracle import live_view
from headrace.compile.plan import WINDOW, OutputPlan, ViewPlan
from headrace.compile.window_functions import WINDOW_FUNCTIONS
from headrace.core.errors import BadRequest, NotFound, Unsupported
from headrace.core.event import OFFSET, PARTITION
from headrace.core.origin import Origin
from headrace.core.schema import nested
from headrace.core.time import LAST, from_iso, iso
from headrace.define.dialect import parse_translatable, sql_of, tokens_of
from headrace.define.tokens import word_of
from headrace.serving.answer import rows_as_objects
from headrace.serving.conditions import Keys, parse_conditions
from headrace.serving.database import Transaction
from headrace.serving.read import read_view_rows

_TOGETHER = {name.upper() for name, word in WINDOW_FUNCTIONS.items() if not word.alone}


@dataclass(frozen=True, slots=True)
class ViewRow:
    """A row's keys in storage form, and the row as the store has it; None if it has none."""

    view: ViewPlan
    stored: tuple[Any, ...]
    answer: tuple[Any, ...] | None

    @property
    def keys(self) -> tuple[OutputPlan, ...]:
        return key_outputs(self.view)

    @property
    def shown_key(self) -> dict[str, Any]:
        row: list[Any] = []
        for output, value in zip(self.keys, self.stored, strict=True):
            row += [value, self._end(value)] if output.type == WINDOW else [value]
        return rows_as_objects([row], self.keys)[0]

    def _end(self, start: int) -> int | None:
        """The end of the window that begins there; None where it never ends."""
        windowed = self.view.windowed
        size = windowed[1].size if windowed else 0
        return start + size if size else None

    @property
    def shown(self) -> dict[str, Any] | None:
        """The row as it is answered."""
        return self.row_of(self.answer) if self.answer else None

    def row_of(self, values: tuple[Any, ...]) -> dict[str, Any]:
        """A row of the second engine, or of the store, as it is answered."""
        narrow = narrowed(self.view, values)
        rest = [(o, v) for o, v in zip(self.view.outputs, narrow, strict=False) if not o.key]
        outputs, shown = [output for output, _ in rest], [value for _, value in rest]
        found = self.shown_key | rows_as_objects([shown], outputs)[0]
        return {output.name: found[output.name] for output in self.view.outputs}

    def same_keys(self, values: tuple[Any, ...]) -> bool:
        """Whether a row of the second engine has these keys."""
        return all(map(values_equal, stored_keys(self.view, values), self.stored))


def stored_keys(view: ViewPlan, row: Sequence[Any]) -> tuple[Any, ...]:
    """The keys of a row; of a window, its start."""
    values = narrowed(view, row)
    pairs = [pair for pair in zip(view.outputs, values, strict=False) if pair[0].key]
    return tuple(value[0] if output.type == WINDOW else value for output, value in pairs)


def find_row(db: Transaction, name: str, keys: Keys, window: str | None) -> ViewRow:
    """The one row of a view that has these keys."""
    view = live_view(db, name)
    check_traceable(view)
    until = _next(window) if window is not None else None
    conditions = parse_conditions(view, keys, window, until)
    whole = msgspec.structs.replace(view, order=(), limit=None)
    rows = read_view_rows(db, whole, conditions)
    if len(rows) > 1:
        raise BadRequest(
            f"more than one row of view '{view.name}' has these keys", hint=_all_keys(view)
        )
    if rows:
        return ViewRow(view, stored_keys(view, rows[0]), tuple(rows[0]))
    if window is not None:
        _check_start(view, _timestamp_us(window))
    return ViewRow(view, _given(view, keys, [condition.value for condition in conditions]), None)


def check_traceable(view: ViewPlan) -> None:
    """Refuse a view whose rows cannot be traced: an event does not count by itself, or a key is
    hidden.
    """
    if reason := _untraceable_reason(view):
        raise Unsupported(
            f"the events behind a row of '{view.name}' cannot be traced: {reason}",
            hint="query the stream's events of that key with `headrace query`.",
        )
    shown = {output.key for output in view.outputs}
    hidden = [key for key in view.keys if key.column not in shown]
    if hidden:
        names = ", ".join("its window" if key.window else key.sql for key in hidden)
        raise Unsupported(
            f"a row of '{view.name}' cannot be traced: its SELECT omits grouping columns",
            hint=f"add to its SELECT: {names}.",
        )


def _untraceable_reason(view: ViewPlan) -> str | None:
    """Why a row is not made of events that count by themselves; None if it is."""
    carry = view.carry
    if view.join:
        return f"it joins '{view.join.left}' with '{view.join.right}'"
    words = map(word_of, tokens_of(view.definition, Origin("plan", 1)))
    if found := next((w for w, after in pairwise(words) if w in _TOGETHER and after == "("), None):
        return f"it has a {found.lower()}"
    if carry and carry.processor:
        return f"its rows are made by processor '{carry.processor.name}'"
    if carry and carry.match:
        return "its rows are found by a pattern or a threshold"
    if key := next((output for output in key_outputs(view) if nested(output.type)), None):
        return f"its grouping column '{key.name}' is of type {key.type}"
    return "it has running aggregates" if carry else None


def _check_start(view: ViewPlan, start_us: int) -> None:
    """Refuse a timestamp at which no window of the view starts."""
    starts = view.windowed[1].starts_near(start_us) if view.windowed else ()
    if starts and start_us not in starts:
        raise BadRequest(
            f"no window of view '{view.name}' starts at {iso(start_us)}",
            hint=f"nearest window starts: {', '.join(map(iso, starts))}.",
        )


def _given(view: ViewPlan, keys: Keys, values: list[Any]) -> tuple[Any, ...]:
    """The keys of a row that does not exist: all of them are required."""
    given = dict(zip((name.lower() for name in keys), values, strict=False))
    windows = iter(values[len(keys) :])
    found = []
    for output in key_outputs(view):
        window = output.type == WINDOW
        value = next(windows, None) if window else given.get(output.name.lower())
        if output.name.lower() not in given and not (window and value is not None):
            raise NotFound(f"view '{view.name}' has no row with these keys", hint=_all_keys(view))
        found.append(value)
    return tuple(found)


def key_outputs(view: ViewPlan) -> tuple[OutputPlan, ...]:
    return tuple(output for output in view.outputs if output.key)


def _all_keys(view: ViewPlan) -> str:
    said = [
        "--window START" if o.type == WINDOW else f"--where {o.name}=…" for o in key_outputs(view)
    ]
    return f"give all of its keys: {' '.join(said) or 'it has none'}."


def _timestamp_us(text: str) -> int:
    try:
        return from_iso(text)
    except ValueError as error:
        raise BadRequest(f"'{text}' is not a timestamp such as 2026-11-15T19:00:00Z") from error


def _next(window: str) -> str:
    """The timestamp just after the start of a window."""
    if (start_us := _timestamp_us(window)) == LAST:
        raise BadRequest(f"no window starts at '{window}', the last valid timestamp")
    return iso(start_us + 1)


# The positions of the events


def event_positions_sql(view_row: ViewRow, *, relaxed: str = "") -> str:
    """DuckDB's SQL: each place of the log that counts in some row, and whether in this one.

    `relaxed` is "where" to leave out the definition's conditions, or "joins" to keep also what its
    joins leave out.
    """
    sql, names = positions_by_key(view_row.view, relaxed)
    same = " AND ".join(_same(output, n) for n, output in enumerate(view_row.keys)) or "true"
    return (
        f"SELECT {PARTITION}, {OFFSET}, bool_or({same}) AS here "
        f"FROM ({sql}) AS c({names}) GROUP BY {PARTITION}, {OFFSET}"
    )


def _same(output: OutputPlan, n: int) -> str:
    """Whether a key is that of the row; doubles are compared as an audit compares them."""
    same, near = f"k{n} IS NOT DISTINCT FROM ${n + 1}", f"CAST(${n + 1} AS DOUBLE)"
    if output.type not in {"FLOAT", "DOUBLE"}:
        return same
    scale = f"greatest(1e-9 * abs(k{n}), 1e-9 * abs({near}), 1e-12)"
    close = f"isfinite(k{n}) AND isfinite({near}) AND abs(k{n} - {near}) <= {scale}"
    return f"({same} OR coalesce({close}, false))"


def positions_by_key(view: ViewPlan, relaxed: str = "") -> tuple[str, str]:
    """DuckDB's SQL: the keys of a row and the place of each event that counts in it; and the names
    of its columns, k0 the first key.
    """
    tree = parse_translatable(view.definition, Origin("plan", 1))
    for select in list(tree.find_all(exp.Select)) if relaxed else ():
        select.set("where", None)
        if relaxed == "joins":
            select.set(
                "joins", [j for join in select.args.get("joins") or () if (j := _outer(join))]
            )
    items = list(tree.expressions)
    group = tree.args.get("group")
    groups = [_item(node, items) for node in group.expressions] if group else []
    shown = [i for i, output in zip(items, view.outputs, strict=True) if output.key]
    place = [exp.column(PARTITION), exp.column(OFFSET)]
    tree.set("expressions", [*shown, *place])
    tree.set("group", exp.Group(expressions=[*groups, *(column.copy() for column in place)]))
    tree.set("having", None)
    hidden = (OutputPlan(PARTITION, "INT", ""), OutputPlan(OFFSET, "BIGINT", ""))
    outputs = key_outputs(view)
    placed = msgspec.structs.replace(view, definition=sql_of(tree), outputs=(*outputs, *hidden))
    keys = [
        f"k{n}, k{n}_end" if output.type == WINDOW else f"k{n}" for n, output in enumerate(outputs)
    ]
    return oracle_sql(placed), ", ".join([*keys, PARTITION, OFFSET])


def _item(node: exp.Expr, items: list[exp.Expr]) -> exp.Expr:
    """What GROUP BY 2 means, before the items are others."""
    if isinstance(node, exp.Literal) and not node.is_string:
        return items[int(node.name) - 1].unalias().copy()
    return node


def _outer(join: exp.Join) -> exp.Join | None:
    """The join as one that leaves no event out; None if it only did that."""
    if str(join.kind).upper() in {"SEMI", "ANTI"}:
        return None
    if join.args.get("on") is not None or join.args.get("using"):
        join.set("side", "LEFT")
        join.set("kind", None)
    return join
