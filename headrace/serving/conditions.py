"""Conditions on keys, put where the indexes are: inside the merge, before rows become one.

A condition that only narrows keys gives the same rows inside and outside, because the merge is by
key. A view with a LIMIT has decided on its rows first, so nothing goes inside it.
tests/serving/test_read.py compares both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from headrace.compile.plan import WINDOW, OutputPlan, ViewPlan
from headrace.compile.translate import Translated
from headrace.core.errors import BadRequest
from headrace.core.time import DAY, from_iso
from headrace.serving.catalog import tables_of
from headrace.serving.finish import quoted, typed_sql


def conditions(
    plan: ViewPlan, keys: Mapping[str, str], since: str | None, until: str | None, *, inside: bool
) -> tuple[list[str], list[Any]]:
    """SQL over the key columns, for `inside` the merge, or over the outputs."""
    where: list[str] = []
    values: list[Any] = []
    for name, text in keys.items():
        output = plan.output(name)
        if output is None or (
            plan.kind == "mergeable" and (output.key is None or output.window_us)
        ):
            known = [
                out.name
                for out in plan.outputs
                if (out.key and not out.window_us) or plan.kind == "read"
            ]
            raise BadRequest(
                f"'{name}' is not a key of view '{plan.name}'",
                detail=f"keys are: {', '.join(known) or 'none'}.",
            )
        where.append(f"{output.key if inside else quoted(output.name)} IS ?")
        values.append(_stored(output, text))
    if since is not None or until is not None:
        column = _window_column(plan, inside)
        for sign, moment in ((">=", since), ("<", until)):
            if moment is not None:
                where.append(f"{column} {sign} ?")
                values.append(_moment(moment))
    return where, values


def _window_column(plan: ViewPlan, inside: bool) -> str:
    output = next((out for out in plan.outputs if out.type == WINDOW), None)
    if output is None:
        raise BadRequest(f"view '{plan.name}' has no window, so 'from' and 'to' have no meaning")
    return output.key if inside and output.key else quoted(f"{output.name}_start")


def _stored(output: OutputPlan, text: str) -> Any:
    """A value of a query parameter in storage form."""
    if text == "" and output.type != "STRING":
        return None
    try:
        match output.type:
            case "INT" | "BIGINT":
                return int(text)
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


def pushed(translated: Translated, view: ViewPlan) -> str:
    """A query over one view, with its conditions on keys also put inside that view."""
    tree = translated.tree
    where = tree.args.get("where")
    # A limit or order inside the view decides on its rows before the query's condition does.
    if view.kind != "mergeable" or where is None or view.limit is not None:
        return tree.sql(dialect="sqlite")
    parts = where.this.flatten() if isinstance(where.this, exp.And) else [where.this]
    inner = [text for part in parts if (text := _inner(part, view))]
    sql = typed_sql(view, *tables_of(view)[:2], where=" AND ".join(inner))
    table = next(iter(tree.find_all(exp.Table)))
    alias = quoted(table.alias_or_name)
    marker = "_headrace_inner_"
    table.replace(exp.to_table(marker))
    return tree.sql(dialect="sqlite").replace(marker, f"({sql}) AS {alias}")


def _inner(part: exp.Expr, view: ViewPlan) -> str | None:
    """A condition `key <op> literal` over the view's key column, if it is one."""
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
    return f"{output.key} {sign} {part.expression.sql(dialect='sqlite')}"
