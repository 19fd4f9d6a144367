"""Conditions on keys, put where the indexes are: inside the merge, before rows become one.

A condition that only narrows keys gives the same rows inside and outside, because the merge is by
key. A condition on a window whose rows are put together when read goes inside as a range that holds
all their parts, and stays outside as it is. A view with a LIMIT has decided on its rows first, so
nothing goes inside it. tests/serving/test_read.py compares both.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

from sqlglot import exp

from headrace.certified.typed import quoted, text_literal
from headrace.certified.types import duck_type
from headrace.compile.plan import WINDOW, KeyPlan, OutputPlan, ViewPlan
from headrace.compile.windows import Span, end_column
from headrace.core.errors import BadRequest
from headrace.core.schema import WHOLE, Type, nested
from headrace.core.storage import decimal_text, without_nan
from headrace.core.time import DAY, from_iso

# So many windows are looked for one by one; of more, those that have a pane.
SPAN_WINDOWS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Condition:
    """An output, or the start of one that is a window, compared with a value: a time or a date is a
    number.
    """

    output: OutputPlan
    sign: str
    value: Any

    @property
    def outside(self) -> str:
        """The reading engine's SQL over the outputs of the view."""
        edge = '."start"' if self.output.type == WINDOW else ""
        sign = "IS NOT DISTINCT FROM" if self.sign == "IS" else self.sign
        return f"{quoted(self.output.name)}{edge} {sign} {self._literal()}"

    @property
    def stored(self) -> Any:
        """The value as the store keeps it."""
        if isinstance(self.value, Decimal):
            return decimal_text(self.value, *(Type.of(self.output.type).size or (10, 0)))
        return without_nan(self.value)

    def _literal(self) -> str:
        if self.value is None:
            return "NULL"
        match self.output.type:
            case "TIMESTAMP" | "TIMESTAMP_NTZ" | "WINDOW":
                return f"make_timestamp(CAST({self.value} AS BIGINT))"
            case "DATE":
                return f"(DATE '1970-01-01' + {self.value})"
            case "BOOLEAN":
                return "true" if self.value else "false"
            case "BINARY":
                return f"from_hex('{self.value.hex()}')"
            case "STRING":
                return text_literal(self.value)
            case type:
                return f"CAST('{self.value}' AS {duck_type(type)})"


Keys = Mapping[str, str | None]  # of a row, as they are said; None is null


def asked(plan: ViewPlan, keys: Keys, since: str | None, until: str | None) -> list[Condition]:
    """The conditions of a question: key values, and windows that begin in [since, until)."""
    found = [Condition(out := _key(plan, name), "IS", _stored(out, keys[name])) for name in keys]
    for sign, moment in ((">=", since), ("<", until)):
        if moment is not None:
            found.append(Condition(_window(plan), sign, _moment(moment)))
    return found


def inside(plan: ViewPlan, conditions: Iterable[Condition]) -> tuple[str, list[Any]]:
    """SQL over the stored rows, and its values: true for every part of a row that is asked for."""
    where: list[str] = []
    values: list[Any] = []
    for condition in conditions:
        key = next(key for key in plan.keys if key.column == condition.output.key)
        for text in _stored_conditions(key, condition.sign):
            where.append(text)
            values.append(condition.stored)
    return " AND ".join(where), values


def _stored_conditions(key: KeyPlan, sign: str) -> list[str]:
    window = key.window
    if window is None:
        return [f"{key.column} {sign} ?"]
    lower, upper = _BOUNDS[sign]
    if window.joins:
        # Whatever ends before the moment is in no session that begins at it or after.
        return [f"{end_column(key.column)} >= ?"] if lower else []
    below = [f"{key.column} {lower} ?"] if lower else []
    return below + ([f"{key.column} {upper} ? + {window.reach}"] if upper else [])


_BOUNDS = {
    "IS": (">=", "<="),
    ">": (">", None),
    ">=": (">=", None),
    "<": (None, "<"),
    "<=": (None, "<="),
}


def span(plan: ViewPlan, conditions: Iterable[Condition]) -> Span | None:
    """The starts that the windows asked for may have; None where those are many or without end."""
    if plan.windowed is None:
        return None
    column, window = plan.windowed
    bounds = [c for c in conditions if c.output.key == column and isinstance(c.value, int)]
    lowest = [c.value for c in bounds if _BOUNDS[c.sign][0]]
    highest = [c.value for c in bounds if _BOUNDS[c.sign][1]]
    if not lowest or not highest:
        return None
    first, last = max(lowest), min(highest)
    return (first, last) if last - first <= SPAN_WINDOWS_MAX * window.slide else None


def _key(plan: ViewPlan, name: str) -> OutputPlan:
    output = plan.output(name)
    if output is not None and _is_key(plan, output):
        return output
    known = [out.name for out in plan.outputs if _is_key(plan, out)]
    if output is not None and output.key is not None and nested(output.type):
        raise BadRequest(
            f"'{name}' is {output.type}, which a question cannot name a value of",
            hint=f"ask in SQL: SELECT * FROM {plan.name} WHERE …",
        )
    raise BadRequest(
        f"'{name}' is not a key of view '{plan.name}'",
        detail=f"keys are: {', '.join(known) or 'none'}.",
    )


def _is_key(plan: ViewPlan, output: OutputPlan) -> bool:
    if output.type == WINDOW or nested(output.type):
        return False
    return plan.kind == "read" or output.key is not None


def _window(plan: ViewPlan) -> OutputPlan:
    output = next((out for out in plan.outputs if out.type == WINDOW), None)
    if output is None:
        raise BadRequest(f"view '{plan.name}' has no window, so 'from' and 'to' have no meaning")
    return output


def _stored(output: OutputPlan, text: str | None) -> Any:
    """A value of a query parameter; a time or a date is a number."""
    if text is None or (text == "" and output.type not in {"STRING", "BINARY"}):
        return None
    try:
        match output.type:
            case "TINYINT" | "SMALLINT" | "INT" | "BIGINT":
                return _whole(text)
            case "DOUBLE":
                return float(text)
            case "FLOAT":
                return struct.unpack("f", struct.pack("f", float(text)))[0]
            case "BINARY":
                return base64.b64decode(text, validate=True)
            case "BOOLEAN":
                return {"true": 1, "1": 1, "false": 0, "0": 0}[text.lower()]
            case "TIMESTAMP" | "TIMESTAMP_NTZ":
                return from_iso(text)
            case "DATE":
                return from_iso(text) // DAY
            case type if type.startswith("DECIMAL"):
                return _decimal(text, type)
    except (ValueError, KeyError, ArithmeticError) as error:
        raise BadRequest(f"'{text}' is not a {output.type}, which '{output.name}' is") from error
    return text


def _decimal(text: str, type: str) -> Decimal:
    """The number with all digits of its scale."""
    precision, scale = Type.of(type).size or (10, 0)
    return Context(prec=precision).quantize(Decimal(text), Decimal(1).scaleb(-scale))


def _whole(text: str) -> int:
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise ValueError("the store holds no such number")
    return number


def _moment(text: str) -> int:
    try:
        return from_iso(text)
    except ValueError as error:
        raise BadRequest(f"'{text}' is not a moment such as 2026-11-15T19:00:00Z") from error


_SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "IS",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
}


def narrowing(query: exp.Query, view: ViewPlan) -> list[Condition]:
    """Conditions on keys that every row of a SELECT over this view alone must meet."""
    where = query.args.get("where")
    if where is None or not view.kept:
        return []
    parts = where.this.flatten() if isinstance(where.this, exp.And) else [where.this]
    return [found for part in parts if (found := _condition(part.unnest(), view))]


def _condition(part: exp.Expr, view: ViewPlan) -> Condition | None:
    """A condition `key <sign> literal`, if it is one."""
    sign, column = _SIGNS.get(type(part)), part.this
    literal = part.args.get("expression")
    if sign is None or not isinstance(column, exp.Column) or not isinstance(literal, exp.Literal):
        return None
    edge = column.name.lower() == "start" and column.table
    output = view.output(column.table if edge else column.name)
    if output is None or output.key is None or (output.type == WINDOW) != bool(edge):
        return None
    kind = "TIMESTAMP" if edge else output.type
    # Of other types a literal may be written in several ways.
    if kind not in {"STRING", "TIMESTAMP", *WHOLE} or literal.is_string == (kind in WHOLE):
        return None
    try:
        value = from_iso(literal.name) if kind == "TIMESTAMP" else literal.to_py()
    except ValueError:
        return None  # Spark reads more forms of a time; the engine does too
    return Condition(output, sign, value) if isinstance(value, int | str) else None
