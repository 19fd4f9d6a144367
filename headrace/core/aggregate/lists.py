"""Lists and histograms: answers that are JSON.

A list is kept up to its limit and one more, which shows that it was cut. What is kept does not
depend on how the events were cut: collect_list has the first of them in the order of the log, and
collect_set the smallest.
"""

from __future__ import annotations

from headrace.core.aggregate.model import (
    ANY,
    BIGINT,
    NUMBER,
    WHOLE,
    Aggregate,
    AggregateParameter,
    LoweredAggregate,
    Merge,
    ParameterValues,
    Partial,
    Types,
)
from headrace.core.aggregate.numbers import sum_of
from headrace.core.schema import WHOLE as WHOLE_TYPES
from headrace.core.schema import Type
from headrace.core.storage import Storage, text_sql

LIST_LIMIT = 100
BINS_MAX = 100


def _kept(type: Type, values: str, limit: int) -> str:
    kept = f"slice(array_sort({values}{{when}}), 1, {limit + 1})"
    named = text_sql(type.spark).replace("{", "{{").replace("}", "}}")  # a lift is a template
    state = f"named_struct('type', {named}, 'limit', {limit}, 'items', {kept})"
    return f"to_json({state}, map('ignoreNullFields', 'false'))"


def _collect_list(types: Types, said: ParameterValues) -> LoweredAggregate | None:
    event = "named_struct('s', _seq, 'v', {x:part})"
    return _list(Merge.COLLECT_LIST, f"collect_list({event})", types[0], said[0])


def _collect_set(types: Types, said: ParameterValues) -> LoweredAggregate | None:
    # As Spark has it, no map is an element of a set.
    if types[0].has("MAP") or not Storage(types[0]).groups:
        return None
    return _list(Merge.COLLECT_SET, "collect_set({x:key_part})", types[0], said[0])


def _list(merge: Merge, values: str, type: Type, limit: int) -> LoweredAggregate:
    partial = Partial(merge, (_kept(type, values, limit),), ("TEXT",))
    finish = f"coalesce(finish_{merge}({{0}}), '[]')"
    cut = f"coalesce(cut_{merge}({{0}}), false)"
    return LoweredAggregate((partial,), finish, Type.array_of(type), cut)


def _histogram(types: Types, said: ParameterValues) -> LoweredAggregate | None:
    """A sum for what is below, for each bin, and for what is above."""
    low, high, bins = said
    if not types[0].numeric:
        return None
    bin = f"width_bucket({{x}}, {low!r}D, {high!r}D, {bins})"
    counts = [f"count(CASE WHEN {bin} = {n} THEN 1 END)" for n in range(bins + 2)]
    below, *inside, above = [f"coalesce({{{n}}}, 0)" for n in range(bins + 2)]
    inner = f"json_array({', '.join(inside)})"
    finish = f"json_object('below', {below}, 'bins', {inner}, 'above', {above})"
    bins_type = Type.array_of(BIGINT)
    type = Type.struct_of(("below", BIGINT), ("bins", bins_type), ("above", BIGINT))
    return LoweredAggregate(tuple(sum_of(count) for count in counts), finish, type)


def _range_error(said: ParameterValues) -> str | None:
    low, high, _ = said
    if low < high:
        return None
    return f"the low bound of histogram must be less than the high bound, got {low:g} and {high:g}"


def _ids(types: Types, said: ParameterValues) -> LoweredAggregate | None:
    if types[0].name not in WHOLE_TYPES:
        return None
    partial = Partial(Merge.IDS, ("concat_ws(',', collect_set({x}){when})",), ("BLOB",))
    return LoweredAggregate((partial,), "coalesce(finish_ids({0}), 0)", BIGINT)


_SET = "any value but MAP and VARIANT"
_LIMIT = AggregateParameter("limit", int, LIST_LIMIT, 1, 10_000)
ROWS = (
    Aggregate("collect_list", 1, ANY, _collect_list, parameters=(_LIMIT,), needs=("x",)),
    Aggregate("collect_set", 1, _SET, _collect_set, parameters=(_LIMIT,), needs=("x",)),
    Aggregate(
        "histogram",
        1,
        NUMBER,
        _histogram,
        refuses=_range_error,
        parameters=(
            AggregateParameter("low", float),
            AggregateParameter("high", float),
            AggregateParameter("bins", int, None, 1, BINS_MAX),
        ),
    ),
    Aggregate("bitmap_count_distinct", 1, WHOLE, _ids),
)
