"""The seam between batch and speed: all stored rows of a key become one, in the reading engine.

Stored rows have a view's key and partial columns, the key as text (`_key`), and `_group`: 0 for
those of the generation (batch, up to the boundary), the group of their epochs for those of speed
(after it). One SELECT merges them:
    merge(batch(log[:b]), speed(log[b:e])) = batch(log[:e])
A stored row starts with `_key`, the key values as JSON: NULL is a key like any other; a column that
is not lifted, such as a count of distinct values, is filled in by the store. What SQL cannot merge
is a state (serving/states). tests/laws/test_seam.py checks the law on Spark,
tests/laws/test_merge.py every merge without it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from headrace.compile.plan import PartialPlan, ViewPlan
from headrace.compile.windows import Span
from headrace.core.aggregate import Merge
from headrace.core.event import KEY
from headrace.core.schema import Type
from headrace.core.storage import Storage

GROUP = "_group"
_ARROW = {"INTEGER": pa.int64(), "REAL": pa.float64(), "TEXT": pa.string(), "BLOB": pa.binary()}


def columns_of(plan: ViewPlan) -> list[str]:
    """Key and partial columns, in the order in which rows are written."""
    return [key.column for key in plan.keys] + [c for p in plan.partials for c in p.columns]


def stored_schema(plan: ViewPlan) -> pa.Schema:
    """The columns of a view's stored rows, without their group."""
    keys = ["INTEGER" if k.window else Storage(Type.of(k.type)).column for k in plan.keys]
    storages = [*keys, *(storage for p in plan.partials for storage in p.storages)]
    pairs = zip(columns_of(plan), storages, strict=True)
    return pa.schema([(KEY, pa.string()), *((name, _ARROW[storage]) for name, storage in pairs)])


def merge_sql(plan: ViewPlan, rows: str) -> str:
    """SQL that merges stored rows into one row per key."""
    keys = [f"any_value({key.column}) AS {key.column}" for key in plan.keys]
    return _grouped(plan, rows, [KEY], keys)


def windows_sql(plan: ViewPlan, rows: str, span: Span | None = None) -> str:
    """SQL that merges rows of panes or intervals into windows; `span` limits the windows."""
    assert plan.windowed is not None
    column, window = plan.windowed
    rows = window.regrouped(rows, column, [*columns_of(plan), GROUP], plan.plain_keys, span)
    return _grouped(plan, rows, [key.column for key in plan.keys], [])


def _grouped(plan: ViewPlan, rows: str, by: Sequence[str], keys: Sequence[str]) -> str:
    over = f"PARTITION BY {', '.join(by)}"
    steps = [step for partial in plan.partials for step in _before(partial, over)]
    if steps:
        rows = f"SELECT *, {', '.join(steps)} FROM ({rows})"
    parts = [
        f"{sql} AS {column}"
        for partial in plan.partials
        for column, sql in zip(partial.columns, _merges(partial), strict=True)
    ]
    items = [*by, *keys, *parts, f"max({GROUP}) AS {GROUP}"]
    return f"SELECT {', '.join(items)} FROM ({rows}) GROUP BY {', '.join(by)}"


def _before(partial: PartialPlan, over: str) -> list[str]:
    """Window functions over all rows of a key, so that the merge itself is a plain aggregate."""
    first = partial.columns[0]
    match Merge(partial.merge):
        case Merge.MOMENTS:
            # Distances are measured from the mean of the largest part, so they are 0 for equal
            # means.
            n, mean, _ = partial.columns
            order = f"ORDER BY {n} DESC NULLS LAST"
            return [f"first_value({mean}) OVER ({over} {order}) AS {first}_all"]
        case Merge.MAX_BY | Merge.MIN_BY as merge:
            x, y, place = partial.columns
            way = "DESC" if merge is Merge.MAX_BY else "ASC"
            order = f"ORDER BY {place} IS NULL, {y} {way}, {place} DESC"
            firsts = f"OVER ({over} {order})"
            return [f"first_value({column}) {firsts} AS {column}_all" for column in (x, place)]
    return []


def _merges(partial: PartialPlan) -> list[str]:
    """The SQL aggregate for each column of a partial; NULL is the zero of each."""
    columns = partial.columns
    first = columns[0]
    match Merge(partial.merge):
        case Merge.SUM:
            return [_sum(first, partial.storages[0])]
        case Merge.MIN | Merge.MAX as merge:
            return [f"{merge}({first})"]
        case Merge.MOMENTS:
            n, mean, squares = columns
            distance = f"({mean} - {n}_all)"
            shift, total = f"sum({n} * {distance})", f"nullif(sum({n}), 0)"
            whole = f"sum({squares} + {n} * {distance} * {distance}) - {shift} * {shift} / {total}"
            return [_sum(n, "INTEGER"), f"any_value({n}_all) + {shift} / {total}", whole]
        case Merge.MAX_BY | Merge.MIN_BY as merge:
            x, y, place = columns
            return [f"any_value({x}_all)", f"{merge.value[:3]}({y})", f"any_value({place}_all)"]
        case Merge.COUNTED:
            # Builds count only new distinct values, so their counts add up; with a row of speed the
            # count is not known.
            return [f"CASE WHEN max({GROUP}) = 0 THEN {_sum(first, 'INTEGER')} END"]
        case state:
            several = f"merge_{state}(list({first}) FILTER (WHERE {first} IS NOT NULL))"
            return [f"CASE WHEN count({first}) > 1 THEN {several} ELSE any_value({first}) END"]


def _sum(column: str, storage: str) -> str:
    # The engine's sum of whole numbers has more digits than its parts.
    return f"CAST(sum({column}) AS BIGINT)" if storage == "INTEGER" else f"sum({column})"


def stored_rows(plan: ViewPlan, lifted: pa.Table) -> pa.Table:
    """The stored rows of lifted rows."""
    schema, count = stored_schema(plan), lifted.num_rows
    names = set(lifted.column_names)
    columns = [
        lifted.column(field.name).cast(field.type) if field.name in names
        else pa.nulls(count, field.type)
        for field in schema
        if field.name != KEY
    ]  # fmt: skip
    return pa.table([keys_of(plan, lifted), *columns], schema=schema)


def keys_of(plan: ViewPlan, rows: pa.Table) -> pa.Array:
    """The key of each row as text."""
    if not plan.keys:
        return pa.array(["[]"] * rows.num_rows, pa.string())
    texts = [_json_texts(rows.column(key.column)) for key in plan.keys]
    joined = pc.binary_join_element_wise(*texts, ",")
    return pc.binary_join_element_wise("[", joined, "]", "")


def _json_texts(column: pa.ChunkedArray) -> pa.Array:
    """Each value as JSON; a value that stands many times is encoded once."""
    found = column.combine_chunks().dictionary_encode(null_encoding="encode")
    texts = [msgspec.json.encode(_finite(value)).decode() for value in found.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(found.indices)


def _finite(value: Any) -> Any:
    """JSON has no infinite numbers."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
