"""Running values: `f(x) OVER (PARTITION BY k ORDER BY ts)` for each event, over its key so far.

`so_far` is every row of the key up to and including this one, in ORDER: by ts, then by place in the
log, which leaves no ties; so there is no frame to say. A row without a ts has no place in the order
and does not come out. first_value, last_value and lag see NULLs, as Spark's do; everything else
ignores a NULL x and keeps its value, but delta and rate, which are NULL for it.
tests/testing/test_running.py has a table of them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from sqlglot import exp

from headrace.core.errors import BadDefinition, Unsupported
from headrace.core.time import SECOND
from headrace.testing.reference.aggregates import aggregate, aggregating
from headrace.testing.reference.casts import cast, number
from headrace.testing.reference.expressions import evaluate, unsupported
from headrace.testing.reference.order import by_key, log_position
from headrace.testing.reference.values import Key, Row, Timestamp, Value

Sample = tuple[Timestamp, Value]  # a value and the time of its event


def with_running(node: exp.Expr, key: Key, rows: list[Row]) -> list[Row]:
    """The rows with the running value under the key, in the order in which they came."""
    if node.args.get("spec"):
        raise BadDefinition("a running aggregate covers all rows so far and must not have a frame")
    ts = _time(node)
    timed = [row for row in rows if evaluate(ts, row) is not None]
    values = {}
    for group in by_key(node.args.get("partition_by") or [], timed):
        group.sort(key=lambda row: (evaluate(ts, row), log_position(row)))
        for count, row in enumerate(group, start=1):
            values[id(row)] = _value(node.this, ts, group[:count])
    return [row | {key: values[id(row)]} for row in timed]


def _time(node: exp.Expr) -> exp.Expr:
    order = node.args.get("order")
    if order is None or len(order.expressions) != 1 or order.expressions[0].args.get("desc"):
        raise BadDefinition("a running aggregate requires ORDER BY the event time, ascending")
    time: exp.Expr = order.expressions[0].this
    return time


def _value(call: exp.Expr, ts: exp.Expr, so_far: list[Row]) -> Value:
    if isinstance(call, exp.RowNumber):
        return len(so_far)
    if type(call) in _OF_ROWS:
        return _OF_ROWS[type(call)](call, so_far)
    if isinstance(call, exp.Anonymous) and call.name in _OF_SAMPLES:
        return _OF_SAMPLES[call.name](call, [(_moment(ts, r), _x(call, r)) for r in so_far])
    if aggregating(call) and not isinstance(call, exp.Filter):
        return aggregate(call, so_far)
    raise unsupported(call)


def _x(call: exp.Expr, row: Row) -> Value:
    return evaluate(call.expressions[0], row)


def _moment(ts: exp.Expr, row: Row) -> Timestamp:
    moment: Timestamp = cast(evaluate(ts, row), "TIMESTAMP")
    return moment


def _lag(call: exp.Expr, so_far: list[Row]) -> Value:
    if call.args.get("offset") or call.args.get("default"):
        raise Unsupported("the reference interpreter supports lag with one argument only")
    return evaluate(call.this, so_far[-2]) if len(so_far) > 1 else None


def _known(samples: list[Sample]) -> list[Sample]:
    return [sample for sample in samples if sample[1] is not None]


def _last_known(_call: exp.Expr, samples: list[Sample]) -> Value:
    return next((x for _, x in reversed(samples) if x is not None), None)


def _ewma(call: exp.Expr, samples: list[Sample]) -> float | None:
    alpha, value = float(evaluate(call.expressions[1], {})), None
    for x in (float(number(x)) for _, x in _known(samples)):
        value = x if value is None else alpha * x + (1 - alpha) * value
    return value


def _step(samples: list[Sample]) -> tuple[Sample, Sample] | None:
    """The last two known values, if the very last value is known."""
    steps = list(pairwise(_known(samples)))
    return steps[-1] if steps and samples[-1][1] is not None else None


def _delta(_call: exp.Expr, samples: list[Sample]) -> Value:
    step = _step(samples)
    return None if step is None else number(step[1][1]) - number(step[0][1])


def _rate(call: exp.Expr, samples: list[Sample]) -> float | None:
    step, delta = _step(samples), _delta(call, samples)
    passed_us = step[1][0].us - step[0][0].us if step else 0
    return None if not passed_us else float(delta) * SECOND / passed_us


_OF_ROWS: dict[type[exp.Expr], Callable[[exp.Expr, list[Row]], Value]] = {
    exp.FirstValue: lambda call, so_far: evaluate(call.this, so_far[0]),
    exp.LastValue: lambda call, so_far: evaluate(call.this, so_far[-1]),
    exp.Lag: _lag,
}
_OF_SAMPLES: dict[str, Callable[[exp.Expr, list[Sample]], Value]] = {
    "ewma": _ewma,
    "delta": _delta,
    "rate": _rate,
    "last_known": _last_known,
}
