"""The functions that a condition or a measure may call, by name.

NULL is None, and truth has three values. A function is given closures, one for each argument, and
makes of them a closure for the call, so that AND, OR, CASE and COALESCE ask for no more than they
need, from the left. Where Spark differs from the standard we follow Spark, which computes the same
conditions elsewhere: LEAST and GREATEST leave NULLs out, NaN equals itself and is above every other
number, and whole numbers have 64 bits. tests/pattern/test_evaluate.py has a line for each function.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache, reduce
from typing import Any, NamedTuple

from headrace.core.order import below, equal

Closure = Callable[[Any], Any]
_HALF = 1 << 63
_EXACT = Context(prec=800)  # digits, of which a double has at most 767
_WHOLE = re.compile(r"\s*([+-]?)(\d+)(?:\.\d*)?\s*|\s*([+-]?)(\.\d+)\s*", re.ASCII)


class Function(NamedTuple):
    build: Callable[..., Closure]
    least: int  # arguments
    most: int | None


def _and(*parts: Closure) -> Closure:
    def both(at: Any) -> bool | None:
        answer: bool | None = True
        for part in parts:
            if not (one := part(at)):
                if one is not None:
                    return False
                answer = None
        return answer

    return both


def _or(*parts: Closure) -> Closure:
    def either(at: Any) -> bool | None:
        answer: bool | None = False
        for part in parts:
            if one := part(at):
                return True
            if one is None:
                answer = None
        return answer

    return either


def _case(*parts: Closure) -> Closure:
    pairs = list(zip(parts[::2], parts[1::2], strict=False))
    otherwise = parts[-1] if len(parts) % 2 else lambda at: None

    def first_true(at: Any) -> Any:
        for condition, value in pairs:
            if condition(at):
                return value(at)
        return otherwise(at)

    return first_true


def _coalesce(*parts: Closure) -> Closure:
    def first_value(at: Any) -> Any:
        for part in parts:
            if (value := part(at)) is not None:
                return value
        return None

    return first_value


def _in(value: Closure, *candidates: Closure) -> Closure:
    return _or(*(_EQUAL(value, candidate) for candidate in candidates))


def _between(value: Closure, lower: Closure, upper: Closure) -> Closure:
    return _and(_strict2(_at_least)(value, lower), _strict2(_at_most)(value, upper))


def _same(left: Closure, right: Closure) -> Closure:
    def same(at: Any) -> bool:
        x, y = left(at), right(at)
        return x is y if x is None or y is None else equal(*_met(x, y))

    return same


def _extreme(is_better: Callable[[Any, Any], bool]) -> Callable[..., Closure]:
    def better(x: Any, y: Any) -> Any:
        if x is None or y is None:
            return y if x is None else x
        return y if is_better(*_met(y, x)) else x

    def build(*parts: Closure) -> Closure:
        return lambda at: reduce(better, (part(at) for part in parts))

    return build


def _strict1(function: Callable[[Any], Any]) -> Callable[[Closure], Closure]:
    def build(argument: Closure) -> Closure:
        return lambda at: None if (x := argument(at)) is None else function(x)

    return build


def _strict2(function: Callable[[Any, Any], Any]) -> Callable[[Closure, Closure], Closure]:
    def build(left: Closure, right: Closure) -> Closure:
        def call(at: Any) -> Any:
            if (x := left(at)) is None or (y := right(at)) is None:
                return None
            if type(x) is not type(y):
                x, y = _met(x, y)
            return function(x, y)

        return call

    return build


def _strict(function: Callable[..., Any]) -> Callable[..., Closure]:
    def build(*parts: Closure) -> Closure:
        def call(at: Any) -> Any:
            values = [part(at) for part in parts]
            return None if None in values else function(*values)

        return call

    return build


def _met(x: Any, y: Any) -> tuple[Any, Any]:
    """Decimals meet floats as floats, as in SQL; Python would refuse, or compare them exactly."""
    if type(x) is Decimal and type(y) is float:
        return float(x), y
    if type(y) is Decimal and type(x) is float:
        return x, float(y)
    return x, y


def _unequal(x: Any, y: Any) -> bool:
    return not equal(x, y)


def _above(x: Any, y: Any) -> bool:
    return below(y, x)


def _at_most(x: Any, y: Any) -> bool:
    return bool(x <= y or y != y)


def _at_least(x: Any, y: Any) -> bool:
    return _at_most(y, x)


def _wrapping(compute: Callable[..., Any]) -> Callable[..., Any]:
    """A computation whose whole numbers go from the largest on to the smallest."""

    def wrapped(*values: Any) -> Any:
        made = compute(*values)
        if type(made) is int and not -_HALF <= made < _HALF:
            return (made + _HALF) % (2 * _HALF) - _HALF
        return made

    return wrapped


def _divided(x: Any, y: Any) -> float | None:
    return None if y == 0 else float(x) / float(y)


def _remainder(x: Any, y: Any) -> Any:
    """The remainder has the sign of what is divided."""
    if y == 0:
        return None
    if isinstance(x, float) or isinstance(y, float):
        return math.nan if math.isinf(x) else math.fmod(x, y)
    if isinstance(x, Decimal) or isinstance(y, Decimal):
        return x % y  # decimals do it so already
    return abs(x) % abs(y) * (-1 if x < 0 else 1)


@lru_cache(maxsize=1024)
def _like_pattern(pattern: str) -> re.Pattern[str]:
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    read = (wild.get(p) or re.escape(p[1:] if len(p) == 2 else p) for p in parts)
    return re.compile("".join(read), re.DOTALL)


def _like(text: str, pattern: str) -> bool:
    return _like_pattern(pattern).fullmatch(text) is not None


def _rounded(x: Any, places: int = 0) -> Any:
    """Half away from zero."""
    if isinstance(x, float) and not math.isfinite(x):
        return x
    unit = Decimal(1).scaleb(-places)
    exact = Decimal(repr(x) if isinstance(x, float) else x)
    rounded = exact.quantize(unit, ROUND_HALF_UP, _EXACT)
    return rounded if isinstance(x, Decimal) else type(x)(rounded)


def _double(x: Any) -> float | None:
    try:
        return None if isinstance(x, str) and "_" in x else float(x)
    except ValueError:
        return None


def _bigint(x: Any) -> int | None:
    """Towards zero. A double that does not fit is the nearest that does; a text is then NULL."""
    if isinstance(x, str):
        found = _WHOLE.fullmatch(x)
        number = int(found[1] + found[2]) if found and found[2] else 0
        return number if found and -_HALF <= number < _HALF else None
    if x != x:
        return 0
    return int(min(max(x, -_HALF), _HALF - 1)) if math.isfinite(x) else _limit(x)


def _limit(x: float) -> int:
    return _HALF - 1 if x > 0 else -_HALF


def _string(x: Any) -> str:
    if isinstance(x, bool):
        return "true" if x else "false"
    if not isinstance(x, float) or x == 0 or not math.isfinite(x) or 1e-3 <= abs(x) < 1e7:
        return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(str(x), str(x))
    sign, digits, exponent = Decimal(repr(x)).normalize().as_tuple()
    first, *others = map(str, digits)
    power = len(digits) - 1 + int(exponent)
    return f"{'-' if sign else ''}{first}.{''.join(others) or '0'}E{power}"


def _concat(*values: Any) -> str:
    return "".join(map(_string, values))


_EQUAL = _strict2(equal)

FUNCTIONS: dict[str, Function] = {
    "and": Function(_and, 1, None),
    "or": Function(_or, 1, None),
    "not": Function(_strict1(operator.not_), 1, 1),
    "=": Function(_EQUAL, 2, 2),
    "<>": Function(_strict2(_unequal), 2, 2),
    "<": Function(_strict2(below), 2, 2),
    "<=": Function(_strict2(_at_most), 2, 2),
    ">": Function(_strict2(_above), 2, 2),
    ">=": Function(_strict2(_at_least), 2, 2),
    "<=>": Function(_same, 2, 2),
    "+": Function(_strict2(_wrapping(operator.add)), 2, 2),
    "-": Function(_strict2(_wrapping(operator.sub)), 2, 2),
    "*": Function(_strict2(_wrapping(operator.mul)), 2, 2),
    "/": Function(_strict2(_divided), 2, 2),
    "%": Function(_strict2(_remainder), 2, 2),
    "neg": Function(_strict1(_wrapping(operator.neg)), 1, 1),
    "is_null": Function(lambda part: lambda at: part(at) is None, 1, 1),
    "coalesce": Function(_coalesce, 1, None),
    "case": Function(_case, 2, None),
    "if": Function(_case, 3, 3),
    "in": Function(_in, 2, None),
    "between": Function(_between, 3, 3),
    "abs": Function(_strict1(_wrapping(abs)), 1, 1),
    "least": Function(_extreme(below), 1, None),
    "greatest": Function(_extreme(_above), 1, None),
    "concat": Function(_strict(_concat), 1, None),
    "like": Function(_strict2(_like), 2, 2),
    "upper": Function(_strict1(str.upper), 1, 1),
    "lower": Function(_strict1(str.lower), 1, 1),
    "length": Function(_strict1(len), 1, 1),
    "round": Function(_strict(_wrapping(_rounded)), 1, 2),
    "cast_double": Function(_strict1(_double), 1, 1),
    "cast_bigint": Function(_strict1(_bigint), 1, 1),
    "cast_string": Function(_strict1(_string), 1, 1),
}
