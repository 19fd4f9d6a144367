"""Conditions on keys, put where the indexes are: inside the merge, before rows become one.

A condition that only narrows keys gives the same rows inside and outside, because the merge is by
key. A condition on a window whose rows are put together when read goes inside as a range that holds
all their parts, and stays outside as it is. A view with a LIMIT has decided on its rows first, so
nothing goes inside it. tests/serving/test_read.py compares both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from headrace.compile.plan import WINDOW, KeyPlan, OutputPlan, ViewPlan
from headrace.compile.translate import Translated
from headrace.compile.windows import Span, end_column
from headrace.core.errors import BadRequest
from headrace.core.time import DAY, from_iso
from headrace.serving.catalog import tables_of
from headrace.serving.finish import quoted, typed_sql

# So many windows are looked for one by one; of more, those that have a pane.
SPAN_WINDOWS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Condition:
    """An output, or the start of one that is a window, compared with a value in storage form."""

    output: OutputPlan
    sign: str
    value: Any

    @property
    def outside(self) -> str:
        """SQL over the outputs of the view."""
        edge = "_start" if self.output.type == WINDOW else ""
        return f"{quoted(self.output.name + edge)} {self.sign} ?"


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
            values.append(condition.value)
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
    raise BadRequest(
        f"'{name}' is not a key of view '{plan.name}'",
        detail=f"keys are: {', '.join(known) or 'none'}.",
    )


def _is_key(plan: ViewPlan, output: OutputPlan) -> bool:
    return plan.kind == "read" or (output.key is not None and output.type != WINDOW)


def _window(plan: ViewPlan) -> OutputPlan:
    output = next((out for out in plan.outputs if out.type == WINDOW), None)
    if output is None:
        raise BadRequest(f"view '{plan.name}' has no window, so 'from' and 'to' have no meaning")
    return output


def _stored(output: OutputPlan, text: str | None) -> Any:
    """A value of a query parameter in storage form."""
    if text is None or (text == "" and output.type != "STRING"):
        return None
    try:
        match output.type:
            case "INT" | "BIGINT":
                return _whole(text)
            case "DOUBLE":
                return float(text)
            case "BOOLEAN":
                return {"true": 1, "1": 1, "false": 0, "0": 0}[text.lower()]
            case "TIMESTAMP":
                return from_iso(text)
            case "DATE":
                return from_iso(text) // DAY
    except (ValueError, KeyError) as error:
        raise BadRequest(f"'{text}' is not a {output.type}, which '{output.name}' is") from error
    return text


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


_PUSHED: dict[type[exp.Expr], str] = {
    exp.EQ: "IS",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
}


def pushed(translated: Translated, view: ViewPlan) -> tuple[str, list[Any]]:
    """A query over one view, with its conditions on keys also put inside that view."""
    tree = translated.tree
    where = tree.args.get("where")
    # A limit or order inside the view decides on its rows before the query's condition does.
    if not view.kept or where is None or view.limit is not None:
        return tree.sql(dialect="sqlite"), []
    parts = where.this.flatten() if isinstance(where.this, exp.And) else [where.this]
    asked = [found for part in parts if (found := _condition(part, view))]
    inner, values = inside(view, asked)
    sql = typed_sql(view, *tables_of(view)[:2], where=inner, span=span(view, asked))
    table = next(iter(tree.find_all(exp.Table)))
    alias = quoted(table.alias_or_name)
    marker = "_headrace_inner_"
    table.replace(exp.to_table(marker))
    return tree.sql(dialect="sqlite").replace(marker, f"({sql}) AS {alias}"), values * 2


def _condition(part: exp.Expr, view: ViewPlan) -> Condition | None:
    """A condition `key <op> literal`, if it is one."""
    part = part.unnest()
    sign = _PUSHED.get(type(part))
    if (
        sign is None
        or not isinstance(part.this, exp.Column)
        or not isinstance(part.expression, exp.Literal)
    ):
        return None
    name = part.this.name
    output = view.output(name) or view.output(name.removesuffix("_start"))
    if (
        output is None
        or output.key is None
        or (output.type == WINDOW and not name.endswith("_start"))
    ):
        return None
    return Condition(output, sign, part.expression.to_py())
