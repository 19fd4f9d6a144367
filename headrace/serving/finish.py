"""The finish of a view: from its merged rows to the rows of its answer.

The cache of a view has the rows of its answer, if each follows from one merged row; for a view with
an ORDER BY or a LIMIT it has the merged rows, which are finished on read. Columns of cached rows
have plain names (`o0`, `o1`), because two of an answer may have the same name, followed by whether
speed contributed to the row, which of its lists were cut, and its key.

A window without events has no row. Its values follow from SQL: a count is 0, and a sum, an average
or a maximum is NULL; each is the output's own finish over the merged row without events. HAVING and
LIMIT omit rows that have events, so the values are not known there.
tests/serving/test_empty_windows.py checks it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import msgspec
import pyarrow as pa

from headrace.certified.relation import AnswerColumn, ReadRelation
from headrace.certified.select import CompiledQuery
from headrace.certified.typed import quoted
from headrace.compile.finish import answer_columns, compile_finish
from headrace.compile.plan import FRESH, MERGED, WINDOW, OutputPlan, ViewPlan
from headrace.core.event import KEY
from headrace.core.time import MILLISECOND
from headrace.serving.answer import Windows
from headrace.serving.conditions import Condition
from headrace.serving.database import Transaction
from headrace.serving.engine import run
from headrace.serving.merged_rows import SECONDS_MAX, empty_row, merged_rows, read_stored

COMPILED_MAX = 1_000
_COMPILED: dict[tuple[str, ...], CompiledQuery] = {}  # every read of a view uses the same
_WINDOWS: dict[str, Windows] = {}  # it depends on the plan alone, and every read needs it


def rows_name(live: ViewPlan) -> str:
    """The name of the table of a view's rows in the reading engine."""
    return f"rows_{live.fingerprint}"


def read_cached(db: Transaction, live: ViewPlan, keys: Collection[str] | None = None) -> pa.Table:
    """The rows of a view to cache, of all keys or some, from the store."""
    merged = merged_rows(live, read_stored(db, live, keys))
    if not live.rowwise:
        return merged
    metadata = {FRESH: "BOOLEAN"} | {call.cut_column: "BOOLEAN" for call in live.calls if call.cut}
    metadata |= {} if live.regroups else {KEY: "STRING"}
    made = _finish(live, [OutputPlan(name, type, name) for name, type in metadata.items()])
    table = run(made.sql, {rows_name(live): merged}, SECONDS_MAX)
    return table.rename_columns([*_plain_names(live), *metadata])


def cached_relation(live: ViewPlan, *, fresh: bool = False) -> ReadRelation:
    """A view's answer over its cached rows; with `fresh`, also whether speed contributed to each
    row.
    """
    if not live.rowwise:
        return merged_relation(live, fresh=fresh)
    pairs = zip(_plain_names(live), live.outputs, strict=True)
    items = [f"{name} AS {quoted(output.name)}" for name, output in pairs]
    items += [FRESH] if fresh else []
    sql = f"(SELECT {', '.join(items)} FROM {rows_name(live)})"
    return ReadRelation(sql, merged_relation(live, fresh=fresh).columns)


def filter_rows(live: ViewPlan, cached: pa.Table, conditions: Iterable[Condition]) -> pa.Table:
    """The cached rows that meet the conditions."""
    for condition in conditions:
        column = cached.column(live.outputs.index(condition.output))
        cached = cached.filter(condition.mask(column))
    return cached


def merged_relation(live: ViewPlan, *, fresh: bool = False) -> ReadRelation:
    """A view's answer over its merged rows."""
    made = _finish(live, [OutputPlan(FRESH, "BOOLEAN", FRESH)] if fresh else [])
    return ReadRelation(f"({made.sql})", columns_with_lists(live, made))


def columns_with_lists(view: ViewPlan, made: CompiledQuery) -> tuple[AnswerColumn, ...]:
    """The columns of a view's answer with the lists behind them, and additional columns."""
    columns = answer_columns(view)
    pairs = zip(columns, made.columns, strict=False)
    found = [replace(column, lists=made.lists) for column, made in pairs]
    return (*found, *made.columns[len(columns) :])


def _finish(live: ViewPlan, additional: Sequence[OutputPlan]) -> CompiledQuery:
    """The finish over the view's rows, with additional columns of merged rows."""
    name = live.fingerprint, *(output.name for output in additional)
    if name not in _COMPILED:
        if len(_COMPILED) >= COMPILED_MAX:
            _COMPILED.clear()
        more = msgspec.structs.replace(live, outputs=(*live.outputs, *additional))
        _COMPILED[name] = compile_finish(more, rows_name(live))
    return _COMPILED[name]


def _plain_names(live: ViewPlan) -> list[str]:
    return [f"o{n}" for n, _ in enumerate(live.outputs)]


def windows_of(plan: ViewPlan) -> Windows | None:
    """None for a view without windows of a fixed interval, such as one of sessions."""
    slide = plan.windowed[1].slide if plan.windowed else 0
    if not slide or not any(out.type == WINDOW for out in plan.outputs):
        return None
    if plan.fingerprint not in _WINDOWS:
        if len(_WINDOWS) >= COMPILED_MAX:
            _WINDOWS.clear()
        _WINDOWS[plan.fingerprint] = Windows(slide / MILLISECOND, _empty(plan))
    return _WINDOWS[plan.fingerprint]


def _empty(plan: ViewPlan) -> dict[str, float | int]:
    outputs = tuple(out for out in plan.outputs if out.key is None)
    if plan.having or plan.limit is not None or not outputs:
        return {}
    values = msgspec.structs.replace(plan, outputs=outputs, order=())
    (row,) = run(compile_finish(values, MERGED).sql, {MERGED: empty_row(plan)}).to_pylist()
    return {name: value for name, value in row.items() if type(value) in (int, float)}
