"""The scalar functions and operators: one table from sqlglot's node to plain Python.

Every function in `STRICT` gives NULL when any argument is NULL, and never sees one; those that
handle NULL themselves are in `NULL_AWARE`. Whole numbers are 64 bits wide and wrap as Spark's do
with ANSI off. A literal such as 1.5 is a double here, where Spark has a decimal of the same value.
tests/testing/test_expressions.py has one row or more for each.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import cmp_to_key, reduce
from typing import Any

from sqlglot import exp

from headrace.testing.reference.casts import cast, number, paired
from headrace.testing.reference.timestamps import FIELDS, timestamp_field
from headrace.testing.reference.values import Duration, Timestamp, Value, order, wrapped

Function = Callable[..., Value]
Nodes = dict[type[exp.Expr], Function]


def compared(test: Callable[[int], bool]) -> Function:
    """A comparison from a test of the order: -1, 0 or 1."""

    def compare(a: Value, b: Value) -> bool | None:
        a, b = paired(a, b)
        return None if a is None or b is None else test(order(a, b))

    return compare


equal = compared(lambda found: found == 0)


def equal_or_both_null(a: Value, b: Value) -> bool:
    if a is None or b is None:
        return a is b
    return bool(equal(a, b))


_DIGITS = 80  # more than a product of two decimals has


def _meeting(a: Value, b: Value) -> tuple[Value, Value]:
    """A decimal that meets a double becomes one."""
    if isinstance(a, float) and isinstance(b, Decimal):
        return a, float(b)
    if isinstance(b, float) and isinstance(a, Decimal):
        return float(a), b
    return a, b


def _arithmetic(operation: Callable[[Any, Any], Any]) -> Function:
    def compute(a: Value, b: Value) -> Value:
        a, b = _meeting(number(a), number(b))
        if a is None or b is None:
            return None
        with localcontext(prec=_DIGITS):
            result = operation(a, b)
        return wrapped(result) if isinstance(result, int) else result

    return compute


_plus, _minus = _arithmetic(operator.add), _arithmetic(operator.sub)
_times = _arithmetic(operator.mul)


def _add(a: Value, b: Value) -> Value:
    if isinstance(a, Duration) and isinstance(b, Timestamp):
        a, b = b, a
    if isinstance(b, Duration):
        return type(a)(a.us + b.us)
    return _plus(a, b)


def _subtract(a: Value, b: Value) -> Value:
    return type(a)(a.us - b.us) if isinstance(b, Duration) else _minus(a, b)


def _divide(a: Value, b: Value) -> Value:
    a, b = _meeting(number(a), number(b))
    if a is None or not b:
        return None
    if isinstance(a, Decimal) or isinstance(b, Decimal):
        with localcontext(prec=_DIGITS):
            return Decimal(a) / Decimal(b)
    return float(a) / float(b)


def _whole_quotient(a: Any, b: Any) -> int | None:
    """Towards zero, as Java divides."""
    if not b:
        return None
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if _whole(a, b) else int(a / b)


def _remainder(a: Any, b: Any) -> Value:
    """With the sign of the dividend, as Java's."""
    if not b:
        return None
    if not _whole(a, b):
        return math.nan if math.isinf(a) else math.fmod(a, b)
    return (-1 if a < 0 else 1) * (abs(a) % abs(b))


def _whole(a: Value, b: Value) -> bool:
    return isinstance(a, int) and isinstance(b, int)


def _negate(value: Value) -> Value:
    if isinstance(value, Duration):
        return Duration(-value.us)
    # Zero minus zero is not minus zero, so a double is multiplied.
    return _minus(0, value) if isinstance(value, int) else _times(value, -1)


def _round(value: Value, places: int = 0) -> Value:
    """Half up, away from zero, on the shortest decimal that prints as the number."""
    value = number(value)
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return value
    unit = Decimal(1).scaleb(-places)
    with localcontext(prec=800):  # of which a double needs at most 767
        digits = value if isinstance(value, Decimal) else Decimal(repr(value))
        exact = (digits / unit).quantize(Decimal(1), ROUND_HALF_UP) * unit
    if isinstance(value, Decimal):
        return exact
    return int(exact) if isinstance(value, int) else float(exact)


def _whole_by(rounding: Callable[[float], int]) -> Function:
    def compute(value: Value) -> Value:
        value = number(value)
        return value if value is None or isinstance(value, int) else cast_whole(rounding(value))

    return compute


def cast_whole(value: int) -> Value:
    return cast(float(value), "BIGINT") if abs(value) >= 2**63 else value


def _text(function: Callable[..., Value]) -> Function:
    """A function of text, whose first argument is made text."""
    return lambda value, *others: function(cast(value, "STRING"), *others)


def _substring(text: str, start: int, length: int = 2**31) -> str:
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    return text[max(first, 0) : max(first + length, 0)]


def _split(text: str, pattern: str, limit: int = -1) -> list[str]:
    if not pattern:
        return list(text)
    pieces: list[str] = []
    end = 0
    for match in re.finditer(pattern, text):
        if 0 < limit <= len(pieces) + 1:
            break
        pieces.append(text[end : match.start()])
        end = match.end()
    return [*pieces, text[end:]]


def _like(text: str, pattern: str) -> bool:
    """`%` is any text, `_` one character, a backslash takes the next one as it is."""
    parts = re.findall(r"\\?.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    regex = "".join(wild.get(part) or re.escape(part[-1]) for part in parts)
    return re.fullmatch(regex, text, re.DOTALL) is not None


def _element(array: list[Value] | dict[str, Value], index: Any) -> Value:
    """An item of an array by its number, or of a map by its key."""
    if isinstance(array, dict):
        return array.get(index)
    return array[index] if 0 <= index < len(array) else None


def _contains(array: list[Value], wanted: Value) -> bool | None:
    found = [None if item is None else equal(item, wanted) for item in array]
    return True if True in found else None if None in found else False


def _extreme(sign: int) -> Function:
    """greatest and least: NULLs are ignored."""
    key = cmp_to_key(lambda a, b: sign * order(a, b))
    return lambda *values: max((v for v in values if v is not None), key=key, default=None)


def _not(value: Value) -> bool | None:
    value = cast(value, "BOOLEAN")
    return None if value is None else not value


def _and(a: Value, b: Value) -> bool | None:
    a, b = cast(a, "BOOLEAN"), cast(b, "BOOLEAN")
    return False if a is False or b is False else None if a is None or b is None else True


def _or(a: Value, b: Value) -> bool | None:
    return _not(_and(_not(a), _not(b)))


def _null_if(a: Value, b: Value) -> Value:
    return None if a is None or (b is not None and equal(a, b)) else a


STRICT: Nodes = {
    exp.EQ: equal,
    exp.NEQ: compared(lambda found: found != 0),
    exp.LT: compared(lambda found: found < 0),
    exp.LTE: compared(lambda found: found <= 0),
    exp.GT: compared(lambda found: found > 0),
    exp.GTE: compared(lambda found: found >= 0),
    exp.Add: _add,
    exp.Sub: _subtract,
    exp.Mul: _times,
    exp.Div: _divide,
    exp.IntDiv: _arithmetic(_whole_quotient),
    exp.Mod: _arithmetic(_remainder),
    exp.Neg: _negate,
    exp.Abs: lambda value: _negate(value) if (number(value) or 0) < 0 else number(value),
    exp.Round: _round,
    exp.Floor: _whole_by(math.floor),
    exp.Ceil: _whole_by(math.ceil),
    exp.Upper: _text(str.upper),
    exp.Lower: _text(str.lower),
    exp.Length: _text(len),
    exp.Substring: _text(_substring),
    exp.Left: _text(lambda text, n: text[: max(n, 0)]),
    exp.Right: _text(lambda text, n: text[-n:] if n > 0 else ""),
    exp.Concat: lambda *values: "".join(cast(value, "STRING") for value in values),
    exp.DPipe: lambda a, b: cast(a, "STRING") + cast(b, "STRING"),
    exp.RegexpSplit: _text(_split),
    exp.Like: _text(_like),
    exp.Bracket: _element,
    exp.ArrayContains: _contains,
    **{
        node: (lambda value, name=name: timestamp_field(value, name))
        for node, name in FIELDS.items()
    },
}
NULL_AWARE: Nodes = {
    exp.NullSafeEQ: equal_or_both_null,
    exp.NullSafeNEQ: lambda a, b: not equal_or_both_null(a, b),
    exp.Not: _not,
    exp.And: lambda *values: reduce(_and, values),
    exp.Or: lambda *values: reduce(_or, values),
    exp.Coalesce: lambda *values: next((v for v in values if v is not None), None),
    exp.Nullif: _null_if,
    exp.Greatest: _extreme(1),
    exp.Least: _extreme(-1),
    exp.Array: lambda *values: list(values),
    # Spark gives -1 for the size of NULL unless ANSI is on.
    exp.ArraySize: lambda array: -1 if array is None else len(array),
}
