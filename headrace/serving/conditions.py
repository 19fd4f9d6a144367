"""Conditions on keys, applied before the merge, where the store has indexes.

The merge is by key, so a condition on keys selects the same rows before and after it. A condition
on a window that is merged on read is applied before as a range that contains all its parts, and
again after. The LIMIT of a view applies first, so no condition is applied before its merge.
tests/serving/test_read.py compares both.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from headrace.certified.typed import quoted, text_literal
from headrace.certified.types import duck_type
from headrace.compile.plan import WINDOW, KeyPlan, OutputPlan, ViewPlan
from headrace.compile.windows import Span
from headrace.core.errors import BadRequest
from headrace.core.schema import WHOLE, Type
from headrace.core.storage import decimal_text
from headrace.core.time import DAY, from_iso

# Up to so many windows are looked up one by one; of more, only those that have a pane.
SPAN_WINDOWS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison of an output, or of the start of a window, with a value; times and dates are
    numbers.
    """

    output: OutputPlan
    sign: str
    value: Any

    @property
    def sql(self) -> str:
        """SQL of the reading engine over the outputs of the view."""
        edge = '."start"' if self.output.type == WINDOW else ""
        return f"{quoted(self.output.name)}{edge} {_operator(self.sign)} {self._literal()}"

    @property
    def comparable(self) -> bool:
        """Whether `mask` can evaluate it."""
        return self.output.type in {*_UNIQUE_FORM, WINDOW}

    def mask(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """For each value of the output whether the condition is met; NULL counts as false."""
        if self.output.type == WINDOW:
            column = pc.struct_field(column, "start")
        if self.value is None:
            return pc.is_null(column)
        kind = pa.timestamp("us") if pa.types.is_timestamp(column.type) else column.type
        return _COMPARED[self.sign](column, pa.scalar(self.value, kind))

    @property
    def stored(self) -> Any:
        """The value as the store keeps it."""
        if isinstance(self.value, Decimal):
            return decimal_text(self.value, *(Type.of(self.output.type).size or (10, 0)))
        return self.value

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
                return f"CAST({text_literal(str(self.value))} AS {duck_type(type)})"


# Types whose equal values have one stored form, so that a key can be computed from conditions.
_UNIQUE_FORM = {"STRING", "DATE", "TIMESTAMP", *WHOLE}
_COMPARED = {
    "IS": pc.equal, ">": pc.greater, ">=": pc.greater_equal, "<": pc.less, "<=": pc.less_equal,
}  # fmt: skip
Keys = Mapping[str, str | None]  # key values as text; None is NULL


def parse_conditions(
    plan: ViewPlan, keys: Keys, since: str | None, until: str | None
) -> list[Condition]:
    """The conditions of a request: key values, and windows that start in [since, until)."""
    found = [
        Condition(out := _key_output(plan, name), "IS", _stored(out, keys[name])) for name in keys
    ]
    for sign, time in ((">=", since), ("<", until)):
        if time is not None:
            found.append(Condition(_window_output(plan), sign, _timestamp(time)))
    return found


def key_of(plan: ViewPlan, conditions: Collection[Condition]) -> str | None:
    """The key of the only row that meets the conditions; None if there may be several."""
    values = {
        c.output.key: c.stored
        for c in conditions
        if c.sign == "IS" and c.output.type in _UNIQUE_FORM
    }
    keys = [key.column for key in plan.keys]
    if not keys or len(conditions) != len(keys) or values.keys() != set(keys):
        return None
    return msgspec.json.encode([values[key] for key in keys]).decode()


def stored_where(plan: ViewPlan, conditions: Iterable[Condition]) -> str:
    """SQL over the stored rows that is true for every part of a selected row."""
    where: list[str] = []
    for condition in conditions:
        key = next(key for key in plan.keys if key.column == condition.output.key)
        where += _stored_conditions(key, condition.sign, _stored_literal(condition.stored))
    return " AND ".join(where)


def _stored_literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bytes():
            return f"from_hex('{value.hex()}')"
        case float():
            return f"CAST('{value}' AS DOUBLE)"
        case int():
            return f"CAST({int(value)} AS BIGINT)"
    return text_literal(value)


def _stored_conditions(key: KeyPlan, sign: str, value: str) -> list[str]:
    if key.window is None:
        return [f"{key.column} {_operator(sign)} {value}"]
    return key.window.stored_where(key.column, *_BOUNDS[sign], value)


def _operator(sign: str) -> str:
    return "IS NOT DISTINCT FROM" if sign == "IS" else sign


_BOUNDS = {"IS": (">=", "<="), ">": (">", ""), ">=": (">=", ""), "<": ("", "<"), "<=": ("", "<=")}


def window_range(plan: ViewPlan, conditions: Iterable[Condition]) -> Span | None:
    """The range of starts of the selected windows; None if it is unbounded or has too many."""
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


def _key_output(plan: ViewPlan, name: str) -> OutputPlan:
    if found := plan.key_parameter(name):
        return found
    output = plan.output(name)
    known = [out.name for out in plan.outputs if plan.key_parameter(out.name)]
    if output is not None and output.type != WINDOW and (output.key or not plan.kept):
        raise BadRequest(
            f"key '{name}' of type {output.type} is not supported as a parameter",
            hint=f"use SQL: SELECT * FROM {plan.name} WHERE …",
        )
    raise BadRequest(
        f"'{name}' is not a key of view '{plan.name}'",
        detail=f"available keys: {', '.join(known) or 'none'}.",
    )


def _window_output(plan: ViewPlan) -> OutputPlan:
    output = next((out for out in plan.outputs if out.type == WINDOW), None)
    if output is None:
        raise BadRequest(f"'from' and 'to' require a windowed view; '{plan.name}' has no window")
    return output


def _stored(output: OutputPlan, text: str | None) -> Any:
    """The value of a query parameter; times and dates are numbers."""
    if text is None or (text == "" and output.type not in {"STRING", "BINARY"}):
        return None
    try:
        match output.type:
            case "TINYINT" | "SMALLINT" | "INT" | "BIGINT":
                return parse_integer(text)
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
        raise BadRequest(
            f"'{text}' is not a valid {output.type}, the type of '{output.name}'"
        ) from error
    return text


def _decimal(text: str, type: str) -> Decimal:
    """The number with all digits of its scale."""
    precision, scale = Type.of(type).size or (10, 0)
    return Context(prec=precision).quantize(Decimal(text), Decimal(1).scaleb(-scale))


def parse_integer(text: str) -> int:
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise ValueError("expected a 64-bit integer")
    return number


def _timestamp(text: str) -> int:
    try:
        return from_iso(text)
    except ValueError as error:
        raise BadRequest(
            f"'{text}' is not a valid timestamp such as 2026-11-15T19:00:00Z"
        ) from error


_SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "IS",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
}


def key_conditions(query: exp.Query, view: ViewPlan) -> list[Condition]:
    """The conditions on keys in the WHERE of a SELECT over this view alone."""
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
    # A literal of another type may be written in several ways.
    if kind not in {"STRING", "TIMESTAMP", *WHOLE} or literal.is_string == (kind in WHOLE):
        return None
    try:
        value = from_iso(literal.name) if kind == "TIMESTAMP" else literal.to_py()
    except ValueError:
        return None  # Spark reads more forms of a time; the engine does too
    return Condition(output, sign, value) if isinstance(value, int | str) else None
