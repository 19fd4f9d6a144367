"""The value of an expression in a row: `evaluate(node, row)`.

The node's columns are resolved (see `names.py`): each is a key of the row. A key that the row does
not have is NULL, as a field that an event does not have. No expression fails on any value; what
the reference does not know at all is `Unsupported`, and says which part it was.
tests/testing/test_expressions.py is a table of expressions and their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Context, Decimal

from sqlglot import exp

from headrace.core.errors import Unsupported
from headrace.testing.reference.casts import CASTS, cast, decimal
from headrace.testing.reference.scalars import NULL_AWARE, STRICT, equal
from headrace.testing.reference.timestamps import interval, truncated
from headrace.testing.reference.values import Row, TimeWindow, Value, Variant

_EXACT = Context(prec=100)
_TYPES = {
    "TEXT": "STRING", "VARCHAR": "STRING", "CHAR": "STRING",
    "INT": "INT", "BIGINT": "BIGINT", "DOUBLE": "DOUBLE", "BOOLEAN": "BOOLEAN",
    "TIMESTAMPTZ": "TIMESTAMP", "TIMESTAMP": "TIMESTAMP", "TIMESTAMPLTZ": "TIMESTAMP",
}  # fmt: skip


def evaluate(node: exp.Expr, row: Row) -> Value:
    """The value of an expression whose columns are keys of the row."""
    kind = type(node)
    if kind in _FORMS:
        value = _FORMS[kind](node, row)
    elif kind in NULL_AWARE:
        value = NULL_AWARE[kind](*_arguments(node, row))
    elif kind in STRICT:
        value = _strict(node, list(_arguments(node, row)))
    else:
        raise unsupported(node)
    # sqlglot represents NOT LIKE by a flag on LIKE.
    return NULL_AWARE[exp.Not](value) if node.args.get("negate") else value


def _strict(node: exp.Expr, arguments: list[Value]) -> Value:
    if any(argument is None for argument in arguments):
        return None
    try:
        return STRICT[type(node)](*arguments)
    except (TypeError, AttributeError) as problem:
        # Spark would have refused such types before any row was seen; the reference has no types.
        raise unsupported(node) from problem


def true(node: exp.Expr, row: Row) -> bool:
    """Whether a condition holds: unknown is not true."""
    return cast(evaluate(node, row), "BOOLEAN") is True


def unsupported(node: exp.Expr) -> Unsupported:
    return Unsupported(
        f"the reference interpreter does not support {node.sql(dialect='spark')}",
        detail=f"it was parsed as {type(node).__name__}.",
        hint="headrace/testing/reference/scalars.py lists the supported functions.",
    )


def operands(node: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of a node that have a value, in the order in which they were written."""
    for name in node.arg_types:
        part = node.args.get(name)
        if isinstance(part, exp.Expr):
            yield part
        elif isinstance(part, list):
            yield from part


def _arguments(node: exp.Expr, row: Row) -> Iterator[Value]:
    return (evaluate(part, row) for part in operands(node))


def _column(node: exp.Expr, row: Row) -> Value:
    return row.get((node.text("table"), node.name))


def _literal(node: exp.Expr, _row: Row) -> Value:
    text = node.name
    if node.is_string:
        return text
    return int(text) if text.isdigit() else float(text)


def _cast(node: exp.Expr, row: Row) -> Value:
    to = node.args["to"]
    if to.this.name == "DECIMAL":
        precision, scale = ([int(size.name) for size in to.expressions] + [10, 0])[:2]
        return decimal(evaluate(node.this, row), precision, scale)
    word = _TYPES.get(to.this.name)
    if word not in CASTS:
        raise unsupported(node)
    return cast(evaluate(node.this, row), word)


def _case(node: exp.Expr, row: Row) -> Value:
    for branch in node.args["ifs"]:
        if node.this is None and true(branch.this, row):
            return evaluate(branch.args["true"], row)
        if node.this is not None and _matches(node.this, branch.this, row):
            return evaluate(branch.args["true"], row)
    default = node.args.get("default")
    return None if default is None else evaluate(default, row)


def _matches(subject: exp.Expr, candidate: exp.Expr, row: Row) -> bool:
    a, b = evaluate(subject, row), evaluate(candidate, row)
    return a is not None and b is not None and equal(a, b) is True


def _if(node: exp.Expr, row: Row) -> Value:
    branch = node.args["true"] if true(node.this, row) else node.args.get("false")
    return None if branch is None else evaluate(branch, row)


def _is(node: exp.Expr, row: Row) -> bool:
    value, wanted = evaluate(node.this, row), node.args["expression"]
    if isinstance(wanted, exp.Null):
        return value is None
    return value is not None and cast(value, "BOOLEAN") is wanted.this


def _in(node: exp.Expr, row: Row) -> bool | None:
    """True if any is equal; else unknown if any comparison was; else false."""
    if not node.expressions:
        raise unsupported(node)
    value = evaluate(node.this, row)
    found = [_equal(value, evaluate(item, row)) for item in node.expressions]
    return True if True in found else None if None in found else False


def _equal(a: Value, b: Value) -> bool | None:
    found: bool | None = None if a is None or b is None else equal(a, b)
    return found


def _between(node: exp.Expr, row: Row) -> Value:
    low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
    high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
    return evaluate(exp.And(this=low, expression=high), row)


def _trim(node: exp.Expr, row: Row) -> Value:
    text, wanted = cast(evaluate(node.this, row), "STRING"), node.args.get("expression")
    characters = evaluate(wanted, row) if wanted else " "
    if text is None or characters is None:
        return None
    sides = {"LEADING": text.lstrip, "TRAILING": text.rstrip}
    return sides.get(str(node.args.get("position") or ""), text.strip)(characters)


def _interval(node: exp.Expr, row: Row) -> Value:
    count = evaluate(node.this, row)
    return None if count is None else interval(str(count), node.text("unit") or None)


def _field(node: exp.Expr, row: Row) -> Value:
    """A field of an object, or `w.start` and `w.end` of a window."""
    value, name = evaluate(node.this, row), node.args["expression"].name.lower()
    if isinstance(value, dict):
        return next((part for field, part in value.items() if field.lower() == name), None)
    if value is None:
        return None
    if name not in {"start", "end"} or not isinstance(value, TimeWindow):
        raise unsupported(node)
    return getattr(value, name)


def _bracket(node: exp.Expr, row: Row) -> Value:
    # sqlglot reads element_at, which counts from one and from the end, as a bracket with an offset.
    if node.args.get("offset"):
        raise unsupported(node)
    array, index = evaluate(node.this, row), evaluate(node.expressions[0], row)
    return None if array is None or index is None else STRICT[exp.Bracket](array, index)


def _within_json(node: exp.Expr, row: Row) -> Value:
    """`payload:a.b[0]`: what the JSON has there, or nothing."""
    value = evaluate(node.this, row)
    value = value.json if isinstance(value, Variant) else value
    for part in node.args["expression"].expressions:
        if isinstance(part, exp.JSONPathKey):
            value = value.get(part.this) if isinstance(value, dict) else None
        elif isinstance(part, exp.JSONPathSubscript):
            inside = isinstance(value, list) and part.this < len(value)
            value = value[part.this] if inside else None
    # Spark keeps a decimal within JSON without the zeros at its end.
    return value.normalize(_EXACT) if isinstance(value, Decimal) else value


def _date_trunc(node: exp.Expr, row: Row) -> Value:
    return truncated(evaluate(node.this, row), node.text("unit"))


_FORMS: dict[type[exp.Expr], Callable[[exp.Expr, Row], Value]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda node, _row: node.this,
    exp.Null: lambda _node, _row: None,
    exp.Paren: lambda node, row: evaluate(node.this, row),
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Case: _case,
    exp.If: _if,
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Trim: _trim,
    exp.Interval: _interval,
    exp.Dot: _field,
    exp.Bracket: _bracket,
    exp.JSONExtract: _within_json,
    exp.TimestampTrunc: _date_trunc,
    # sqlglot wraps the argument of day(), month() and year(); their fields do not depend on it.
    exp.TsOrDsToDate: lambda node, row: evaluate(node.this, row),
}
