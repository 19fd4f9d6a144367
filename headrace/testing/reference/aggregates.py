"""The value of an aggregate over the rows of a group: `aggregate(node, rows)`.

NULL inputs are ignored; of nothing, a count is 0 and everything else NULL. Sums of whole numbers
are exact, and NULL outside 64 bits (ours: Spark wraps). Variances are computed in fractions, so
that the reference has no rounding of its own but the last. For max_by and min_by the key alone must
not be NULL, and among equal keys the event latest in the log wins, by (_offset, _partition).
tests/testing/test_aggregates.py has a table of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from functools import cmp_to_key
from itertools import groupby

from sqlglot import exp

from headrace.testing.reference import lists, statistics
from headrace.testing.reference.casts import cast, number
from headrace.testing.reference.expressions import evaluate, operands, true, unsupported
from headrace.testing.reference.order import in_order, log_position
from headrace.testing.reference.values import (
    INT64_MAX,
    INT64_MIN,
    Row,
    Value,
    grouping,
    order,
    sort_order,
)

_RANK = cmp_to_key(order)
_DIGITS, _DECIMAL_DIGITS_MAX = 80, 38


def aggregating(node: exp.Expr) -> bool:
    """Whether the node itself is a call of an aggregate, with or without FILTER."""
    special = exp.Filter | exp.ArgMax | exp.ArgMin | exp.Count | exp.IgnoreNulls
    return _kind(node) in _OF_VALUES | _OF_TUPLES | _ENDS or isinstance(node, special)


def _kind(node: exp.Expr) -> type[exp.Expr] | str:
    """The key of a node in the tables below: its type, or the name of a function of Headrace."""
    return node.name if isinstance(node, exp.Anonymous) else type(node)


def aggregate(node: exp.Expr, rows: list[Row]) -> Value:
    """The value of one aggregate call over the rows of its group."""
    if isinstance(node, exp.Filter):
        condition = node.args["expression"].this
        return aggregate(node.this, [row for row in rows if true(condition, row)])
    if isinstance(node, exp.ArgMax | exp.ArgMin):
        return _by(node, rows, -1 if isinstance(node, exp.ArgMin) else 1)
    if isinstance(node, exp.Count):
        return len(_counted(node, rows))
    if isinstance(node, exp.IgnoreNulls):
        call = node.this.this if isinstance(node.this, exp.Filter) else node.this
        known = [row for row in rows if evaluate(call.this, row) is not None]
        return aggregate(node.this, known)
    kind = _kind(node)
    if kind in _ENDS:
        return _end(node, rows, _ENDS[kind])
    if kind in _OF_TUPLES:
        return _of_tuples(node, rows, *_OF_TUPLES[kind])
    if kind not in _OF_VALUES:
        raise unsupported(node)
    return _OF_VALUES[kind](_values(node, rows))


def _of_tuples(
    node: exp.Expr, rows: list[Row], arguments: int, compute: Callable[..., Value]
) -> Value:
    """Of the arguments in each event that has them, in the order of the log; the others are
    literals.
    """
    parts = list(operands(node))
    ordered = sorted(rows, key=log_position)
    keyed = [(log_position(r), tuple(evaluate(p, r) for p in parts[:arguments])) for r in ordered]
    keyed = [(place, values) for place, values in keyed if None not in values]
    # The parts of one event, which an explode has made, come in the order of their values.
    keyed.sort(key=lambda pair: (pair[0], [_RANK(value) for value in pair[1]]))
    return compute([values for _, values in keyed], *(evaluate(p, {}) for p in parts[arguments:]))


def _end(node: exp.Expr, rows: list[Row], place: int) -> Value:
    """The value of the first or last event in the order of events; a NULL is a value."""
    groups = [list(parts) for _, parts in groupby(in_order(rows), key=log_position)]
    values = [evaluate(node.this, row) for row in groups[place]] if groups else [None]
    return sorted(values, key=cmp_to_key(sort_order))[place]


def _counted(node: exp.Expr, rows: list[Row]) -> list[Value]:
    if isinstance(node.this, exp.Star):
        return [*rows]
    return _distinct_if_asked(node, _tuples(node, rows))


def _values(node: exp.Expr, rows: list[Row]) -> list[Value]:
    return [value for value, *_ in _distinct_if_asked(node, _tuples(node, rows))]


def _tuples(node: exp.Expr, rows: list[Row]) -> list[tuple[Value, ...]]:
    """The arguments in each row in which none of them is NULL."""
    distinct = isinstance(node.this, exp.Distinct)
    parts = node.this.expressions if distinct else list(operands(node))
    tuples = (tuple(evaluate(part, row) for part in parts) for row in rows)
    return [values for values in tuples if all(value is not None for value in values)]


def _distinct_if_asked(node: exp.Expr, tuples: list[tuple[Value, ...]]) -> list[tuple[Value, ...]]:
    if not isinstance(node.this, exp.Distinct):
        return tuples
    return list({tuple(map(grouping, values)): values for values in tuples}.values())


def _by(node: exp.Expr, rows: list[Row], sign: int) -> Value:
    keyed = [(evaluate(node.args["expression"], row), row) for row in rows]
    keyed = [(key, row) for key, row in keyed if key is not None]
    if not keyed:
        return None
    rank = cmp_to_key(lambda a, b: sign * order(a, b))
    _, winner = max(keyed, key=lambda pair: (rank(pair[0]), log_position(pair[1])))
    return evaluate(node.this, winner)


def _sum(values: list[Value]) -> Value:
    numbers = _numbers(values)
    if not numbers:
        return None
    total = _total(numbers)
    if isinstance(total, Decimal):
        return _held(total)
    return None if isinstance(total, int) and not INT64_MIN <= total <= INT64_MAX else total


def _held(number: Decimal) -> Decimal | None:
    """The number if a DECIMAL has digits for it."""
    return number if len(number.as_tuple().digits) <= _DECIMAL_DIGITS_MAX else None


def _total(numbers: list[Value]) -> Value:
    """Exact for whole numbers and decimals; rounded once, at the end, for others."""
    if all(isinstance(value, int) for value in numbers):
        return sum(numbers)
    if all(isinstance(value, Decimal) for value in numbers):
        with localcontext(prec=_DIGITS):
            return sum(numbers)
    finite = all(math.isfinite(value) for value in numbers)
    return float(_fraction_sum(numbers)) if finite else sum(map(float, numbers))


def _numbers(values: Iterable[Value]) -> list[Value]:
    return [value for value in map(number, values) if value is not None]


def _fraction_sum(numbers: Iterable[Value]) -> Fraction:
    return sum((Fraction(value) for value in numbers), Fraction(0))


def _average(values: list[Value]) -> Value:
    numbers = _numbers(values)
    if not numbers:
        return None
    total = _total(numbers)
    if not isinstance(total, Decimal):
        return total / len(numbers)
    if _held(total) is None:
        return None
    # Four digits more than the values have, if a DECIMAL has them.
    scale = max(-int(value.as_tuple().exponent) for value in numbers) + 4
    scale = min(scale, _DECIMAL_DIGITS_MAX)
    with localcontext(prec=_DIGITS):
        return _held((total / len(numbers)).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP))


def _variance(spare: int) -> Callable[[list[Value]], float | None]:
    """Squared distances from the mean over `n - spare`; NULL when that is not positive."""

    def compute(values: list[Value]) -> float | None:
        numbers = _numbers(values)
        if len(numbers) <= spare or not numbers:
            return None
        if not all(math.isfinite(value) for value in numbers):
            return math.nan
        mean = _fraction_sum(numbers) / len(numbers)
        squares = sum(((Fraction(value) - mean) ** 2 for value in numbers), Fraction(0))
        return float(squares / (len(numbers) - spare))

    return compute


def _root(variance: Callable[[list[Value]], float | None]) -> Callable[[list[Value]], float | None]:
    def compute(values: list[Value]) -> float | None:
        found = variance(values)
        return None if found is None else math.sqrt(found)

    return compute


def _every(values: list[Value]) -> bool | None:
    return all(cast(value, "BOOLEAN") for value in values) if values else None


def _some(values: list[Value]) -> bool | None:
    return any(cast(value, "BOOLEAN") for value in values) if values else None


_sample, _population = _variance(1), _variance(0)
_OF_VALUES: dict[type[exp.Expr] | str, Callable[[list[Value]], Value]] = {
    exp.Sum: _sum,
    exp.Avg: _average,
    exp.Min: lambda values: min(values, key=_RANK, default=None),
    exp.Max: lambda values: max(values, key=_RANK, default=None),
    exp.Variance: _sample,
    exp.VariancePop: _population,
    exp.Stddev: _root(_sample),
    exp.StddevSamp: _root(_sample),
    exp.StddevPop: _root(_population),
    exp.LogicalAnd: _every,
    exp.LogicalOr: _some,
    # The reference counts exactly what the engine may estimate.
    exp.ApproxDistinct: lambda values: len({grouping(value) for value in values}),
    exp.CountIf: lambda values: sum(1 for value in values if cast(value, "BOOLEAN")),
}
# How many arguments are of the event, and what is computed from them and the literals after them.
_OF_TUPLES: dict[type[exp.Expr] | str, tuple[int, Callable[..., Value]]] = {
    exp.ApproxQuantile: (1, statistics.percentile),
    exp.Median: (1, statistics.median),
    exp.CovarPop: (2, statistics.covariance(0)),
    exp.CovarSamp: (2, statistics.covariance(1)),
    exp.Corr: (2, statistics.correlation),
    exp.Skewness: (1, statistics.skewness),
    exp.Kurtosis: (1, statistics.kurtosis),
    exp.ApproxTopK: (1, lists.top_k),
    "collect_list": (1, lists.collect_list),
    "collect_set": (1, lists.collect_set),
    "histogram": (1, lists.histogram),
    "count_min": (1, lists.frequency),
    "bitmap_count_distinct": (1, lists.distinct),
}
_ENDS: dict[type[exp.Expr] | str, int] = {
    exp.First: 0,
    exp.FirstValue: 0,
    exp.Last: -1,
    exp.LastValue: -1,
}
