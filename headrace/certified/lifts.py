"""Functions that only lifts call: the SQL from events to partials, which Headrace itself writes.

Beside the offered functions there are
  shiftright      of a BIGINT, for sums in two halves;
  struct          as the order of `max_by` and `min_by`: field by field, NULL before every value;
  hll_sketch_agg  a sketch of Apache DataSketches that means what Spark's means, in other bytes.
tests/laws/test_kernel.py compares the partials of each aggregate with Spark's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import duckdb

from headrace.certified.aggregates import (
    AGGREGATES,
    SUMMED_DIGITS_MAX,
    AggregateFunction,
    Over,
)
from headrace.certified.function import Scalar
from headrace.certified.function_table import FunctionTable
from headrace.certified.functions import SCALARS
from headrace.certified.typed import TypedSql, combine, not_available
from headrace.certified.types import BINARY, STRING, digits_of, has_order, is_decimal

_ROW = "ORDERED ROW"  # the type of `struct` in a lift


def _ordered_row(values: Sequence[TypedSql]) -> TypedSql:
    if unordered := next((value.type for value in values if not has_order(value.type)), None):
        raise not_available(f"ordering by {unordered}")
    # DuckDB puts NULL after every value of a row, Spark before.
    parts = [f"{value.sql} IS NOT NULL, {value.sql}" for value in values]
    return combine(values, f"row({', '.join(parts)})", _ROW)


def _by(function: str) -> Callable[[Sequence[TypedSql], Over], TypedSql]:
    plain = AGGREGATES[function]
    called = {"max_by": "arg_max_null", "min_by": "arg_min_null"}[function]

    def make(given: Sequence[TypedSql], over: Over) -> TypedSql:
        value, order = given
        if order.type != _ROW:
            return plain.make(given, over)
        return combine(given, over(f"{called}({value.sql}, {order.sql})"), value.type)

    return make


def _sum(given: Sequence[TypedSql], over: Over) -> TypedSql:
    """A sum that DuckDB holds: one of more digits fails where Spark's is NULL."""
    type = given[0].type
    if is_decimal(type) and digits_of(type)[0] > SUMMED_DIGITS_MAX:
        raise not_available(f"a sum of {type}, which may overflow,")
    return AGGREGATES["sum"].make(given, over)


def _sketch(given: Sequence[TypedSql], over: Over) -> TypedSql:
    value, size = given
    kind = {STRING: "text", "BIGINT": "bigint"}.get(value.type)
    if kind is None or size.literal is None:
        raise not_available(f"hll_sketch_agg of {value.type}")
    values = over(f"list(DISTINCT {value.sql})")
    return combine(given, f"hll_of_{kind}({values}, {size.literal})", BINARY)


LIFTS = FunctionTable(
    {
        **SCALARS,
        "shiftright": [Scalar("shiftright", ("BIGINT!", "LITERAL"), "({0} >> {1})", "BIGINT")],
        "struct": [Scalar("struct", ("ANY*",), _ordered_row)],
    },
    {
        **AGGREGATES,
        "sum": AggregateFunction("sum", (1,), _sum),
        "max_by": AggregateFunction("max_by", (2,), _by("max_by")),
        "min_by": AggregateFunction("min_by", (2,), _by("min_by")),
        "hll_sketch_agg": AggregateFunction("hll_sketch_agg", (2,), _sketch),
    },
    strict=True,
)


def register_lifts(connection: duckdb.DuckDBPyConnection) -> None:
    """Register the functions of lifts that are Python in a connection."""
    for kind, type in (("text", "VARCHAR"), ("bigint", "BIGINT")):
        connection.create_function(
            f"hll_of_{kind}", _hll, [f"{type}[]", "INTEGER"], "BLOB", null_handling="special"
        )


def _hll(values: list[str] | list[int] | None, lg_k: int) -> bytes | None:
    # Imported when needed: most views need no sketch, and the import is slow.
    from datasketches import hll_sketch, tgt_hll_type

    known = [value for value in values or () if value is not None]
    if not known:
        return None
    sketch = hll_sketch(lg_k, tgt_hll_type.HLL_8)
    for value in known:
        sketch.update(value)
    return bytes(sketch.serialize_compact())
