"""CAST as Spark does it with ANSI off: what cannot be converted is NULL, what does not fit wraps or
saturates as in Java.

`cast` is explicit conversion, `paired` the implicit one before a comparison (text takes the other
side's type), `number` the one before arithmetic (text becomes a double).
tests/testing/test_expressions.py has a table of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, localcontext

from headrace.core.time import SECOND, from_iso, iso
from headrace.testing.reference.values import INT64_MAX, INT64_MIN, Timestamp, Value, wrapped

# Spark reads a lone point as zero.
_INTEGER = re.compile(r"([+-]?)(\d*)(?:\.\d*)?")
_DOUBLE = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[dDfF]?")
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?")
_SPECIAL = {"nan": math.nan, "infinity": math.inf, "inf": math.inf}
_TRUE, _FALSE = {"t", "true", "y", "yes", "1"}, {"f", "false", "n", "no", "0"}


def cast(value: Value, to: str) -> Value:
    """Convert to one of the types in `CASTS`.

    >>> cast("1.9", "INT"), cast("one", "INT"), cast(1e7, "STRING")
    (1, None, '1.0E7')
    """
    return None if value is None else CASTS[to](value)


def decimal(value: Value, precision: int, scale: int) -> Decimal | None:
    """A DECIMAL of that size, rounded half up; NULL if it has too many digits.

    >>> decimal(2.345, 5, 2), decimal("12345", 5, 2), decimal("x", 5, 2)
    (Decimal('2.35'), None, None)
    """
    if isinstance(value, str):
        value = value.strip() if _DECIMAL.fullmatch(value.strip()) else None
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    exact = Decimal(repr(value) if isinstance(value, float) else value)
    with localcontext(prec=100):
        found = exact.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    return found if found.adjusted() < precision - scale or not found else None


def number(value: Value) -> Value:
    """What arithmetic sees: a number stays, text becomes a double or NULL."""
    return _double(value) if isinstance(value, str) else value


def paired(a: Value, b: Value) -> tuple[Value, Value]:
    """Two values made comparable: text is converted to the type of what it meets."""
    if isinstance(a, str) and not isinstance(b, str):
        return cast(a, _type_word(b)), b
    if isinstance(b, str) and not isinstance(a, str):
        return a, cast(b, _type_word(a))
    return a, b


def _type_word(value: Value) -> str:
    kinds = ((bool, "BOOLEAN"), (int, "BIGINT"), (float, "DOUBLE"), (Timestamp, "TIMESTAMP"))
    return next((word for kind, word in kinds if isinstance(value, kind)), "STRING")


def _string(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _java_double(value)
    if isinstance(value, Timestamp):
        return _moment_text(value)
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _java_double(value: float) -> str:
    """The text of Java's Double.toString: plain between 0.001 and 10 million, else with an E."""
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        plain = f"{Decimal(repr(value)):f}"
        return plain if "." in plain else plain + ".0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text = "".join(map(str, digits))
    power = int(exponent) + len(text) - 1
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{power}"


def _moment_text(value: Timestamp) -> str:
    text = iso(value.us).removesuffix("Z").replace("T", " ")
    return text.rstrip("0") if "." in text else text


def _bigint(value: Value) -> int | None:
    if isinstance(value, str):
        return _integer_of_text(value.strip(), INT64_MAX)
    if isinstance(value, float):
        return _saturated(value, INT64_MIN, INT64_MAX)
    if isinstance(value, Timestamp):
        return value.us // SECOND
    return wrapped(int(value))


def _int(value: Value) -> int | None:
    if isinstance(value, str):
        return _integer_of_text(value.strip(), 2**31 - 1)
    if isinstance(value, float):
        return _saturated(value, -(2**31), 2**31 - 1)
    whole = _bigint(value)
    return None if whole is None else wrapped(whole, bits=32)


def _integer_of_text(text: str, largest: int) -> int | None:
    match = _INTEGER.fullmatch(text)
    if not match or not text.lstrip("+-"):
        return None
    whole = int((match[1] + match[2]) if match[2] else "0")
    return whole if -largest - 1 <= whole <= largest else None


def _saturated(value: float, smallest: int, largest: int) -> int:
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return largest if value > 0 else smallest
    return max(smallest, min(largest, math.trunc(value)))


def _double(value: Value) -> float | None:
    if isinstance(value, str):
        return _double_of_text(value.strip())
    if isinstance(value, Timestamp):
        return value.us / SECOND
    return float(value)


def _double_of_text(text: str) -> float | None:
    if _DOUBLE.fullmatch(text):
        return float(text.rstrip("dDfF"))
    special = _SPECIAL.get(text.lstrip("+-").lower())
    return None if special is None else -special if text.startswith("-") else special


def _boolean(value: Value) -> bool | None:
    if isinstance(value, str):
        word = value.strip().lower()
        return True if word in _TRUE else False if word in _FALSE else None
    return bool(value)


def _timestamp(value: Value) -> Timestamp | None:
    if isinstance(value, Timestamp):
        return value
    if not isinstance(value, str):
        return Timestamp(math.floor(value * SECOND))
    if not _MOMENT.fullmatch(value.strip()):
        return None
    try:
        return Timestamp(from_iso(value))
    except ValueError:
        return None


CASTS: dict[str, Callable[[Value], Value]] = {
    "STRING": _string,
    "INT": _int,
    "BIGINT": _bigint,
    "DOUBLE": _double,
    "BOOLEAN": _boolean,
    "TIMESTAMP": _timestamp,
}
