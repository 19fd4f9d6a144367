"""Conditions on keys, put where the indexes are: inside the merge, before rows become one.

A condition that only narrows keys gives the same rows inside and outside, because the merge is by
key. A condition on a window whose rows are put together when read goes inside as a range that holds
all their parts, and stays outside as it is. A view with a LIMIT has decided on its rows first, so
nothing goes inside it. tests/serving/test_read.py compares both.
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
from headrace.core.schema import WHOLE, Type, nested
from headrace.core.storage import decimal_text
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
        return f"{quoted(self.output.name)}{edge} {_said(self.sign)} {self._literal()}"

    @property
    def plain(self) -> bool:
        """Whether `holds` can tell."""
        return self.output.type in {*_PLAIN, WINDOW}

    def holds(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Of each value of the output whether it is met; NULL is as good as false."""
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
                return f"CAST('{self.value}' AS {duck_type(type)})"


# Types of which equal values have one stored form, so that a key can be written from a question.
_PLAIN = {"STRING", "DATE", "TIMESTAMP", *WHOLE}
_COMPARED = {
    "IS": pc.equal, ">": pc.greater, ">=": pc.greater_equal, "<": pc.less, "<=": pc.less_equal,
}  # fmt: skip
Keys = Mapping[str, str | None]  # of a row, as they are said; None is null


def asked(plan: ViewPlan, keys: Keys, since: str | None, until: str | None) -> list[Condition]:
    """The conditions of a question: key values, and windows that begin in [since, until)."""
    found = [Condition(out := _key(plan, name), "IS", _stored(out, keys[name])) for name in keys]
    for sign, moment in ((">=", since), ("<", until)):
        if moment is not None:
            found.append(Condition(_window(plan), sign, _moment(moment)))
    return found


def key_of(plan: ViewPlan, conditions: Collection[Condition]) -> str | None:
    """What the one row that meets the conditions is known by; None if there may be several."""
    said = {
        c.output.key: c.stored for c in conditions if c.sign == "IS" and c.output.type in _PLAIN
    }
    keys = [key.column for key in plan.keys]
    if not keys or len(conditions) != len(keys) or said.keys() != set(keys):
        return None
    return msgspec.json.encode([said[key] for key in keys]).decode()


def inside(plan: ViewPlan, conditions: Iterable[Condition]) -> str:
    """SQL over the stored rows: true for every part of a row that is asked for."""
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
        return [f"{key.column} {_said(sign)} {value}"]
    return key.window.stored_where(key.column, *_BOUNDS[sign], value)


def _said(sign: str) -> str:
    return "IS NOT DISTINCT FROM" if sign == "IS" else sign


_BOUNDS = {
    "IS": (">=", "<="),
    ">": (">", ""),
    ">=": (">=", ""),
    "<": ("", "<"),
    "<=": ("", "<="),
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
    return not plan.kept or output.key is not None


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
