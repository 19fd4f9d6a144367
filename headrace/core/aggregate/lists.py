"""Lists and histograms: answers that are JSON.

A list is kept up to its limit and one more, which tells that it was cut. What is kept does not
depend on how the events were cut: collect_list has the first of them in the order of the log, and
collect_set the smallest.
"""

from __future__ import annotations

from headrace.core.aggregate.nouns import (
    ANY,
    BIGINT,
    NUMBER,
    WHOLE,
    Aggregate,
    Lowered,
    Merge,
    Parameter,
    Partial,
    Said,
    Types,
)
from headrace.core.aggregate.numbers import sum_of
from headrace.core.schema import Type

LIST_LIMIT = 100
BINS_MAX = 100


def _kept(values: str, limit: int) -> str:
    kept = f"slice(array_sort({values}{{when}}), 1, {limit + 1})"
    return f"to_json(named_struct('limit', {limit}, 'items', {kept}))"


def _collect_list(types: Types, said: Said) -> Lowered | None:
    event = f"named_struct('s', _seq, 'v', {_one_zero(types[0])})"
    return _list(Merge.COLLECT_LIST, f"collect_list({event})", types[0], said[0])


def _collect_set(types: Types, said: Said) -> Lowered | None:
    return _list(Merge.COLLECT_SET, f"collect_set({_one_zero(types[0])})", types[0], said[0])


def _list(merge: Merge, values: str, type: Type, limit: int) -> Lowered | None:
    if type.nested or type.name == "DECIMAL":
        return None
    partial = Partial(merge, (_kept(values, limit),), ("TEXT",))
    finish = f"coalesce(finish_{merge}({{0}}, '{type.name}'), '[]')"
    return Lowered((partial,), finish, Type.array_of(type))


def _one_zero(type: Type) -> str:
    """Adding zero makes -0.0 and 0.0 one value."""
    return "{x} + 0.0D" if type.name == "DOUBLE" else "{x}"


def _histogram(types: Types, said: Said) -> Lowered | None:
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
    return Lowered(tuple(sum_of(count) for count in counts), finish, type)


def _no_range(said: Said) -> str | None:
    low, high, _ = said
    return (
        f"the low of histogram, {low:g}, is not below its high, {high:g}" if low >= high else None
    )


def _ids(types: Types, said: Said) -> Lowered | None:
    if types[0].name not in {"INT", "BIGINT"}:
        return None
    partial = Partial(Merge.IDS, ("concat_ws(',', collect_set({x}){when})",), ("BLOB",))
    return Lowered((partial,), "coalesce(finish_ids({0}), 0)", BIGINT)


_LIMIT = Parameter("limit", int, LIST_LIMIT, 1, 10_000)
ROWS = (
    Aggregate("collect_list", 1, ANY, _collect_list, parameters=(_LIMIT,), needs=("x",)),
    Aggregate("collect_set", 1, ANY, _collect_set, parameters=(_LIMIT,), needs=("x",)),
    Aggregate(
        "histogram",
        1,
        NUMBER,
        _histogram,
        refuses=_no_range,
        parameters=(
            Parameter("low", float),
            Parameter("high", float),
            Parameter("bins", int, None, 1, BINS_MAX),
        ),
    ),
    Aggregate("bitmap_count_distinct", 1, WHOLE, _ids),
)
