"""Compiles a condition of DEFINE: one part is evaluated by Spark, the other by the matcher.

An expression over the current row alone is a column that Spark computes, whatever SQL it uses. The
matcher has few operations between several rows, each with fixed types: there are no implicit casts.
tests/compile/test_match_recognize.py checks both.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headrace.compile.navigation import DOUBLE, TEXT, NavigationReader, TypedExpression
from headrace.core.pattern import Expression, FunctionCall, Literal, RowNavigation, Value
from headrace.core.schema import Type
from headrace.core.time import duration_us
from headrace.define.dialect import sql_of

BOOLEAN, TIMESTAMP, BIGINT = Type("BOOLEAN"), Type("TIMESTAMP"), Type("BIGINT")
INTERVAL, NULL = Type("INTERVAL"), Type("NULL")
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}  # fmt: skip
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%",
}  # fmt: skip
_LOGIC: dict[type[exp.Expr], str] = {exp.And: "and", exp.Or: "or"}
_TEXTS: dict[type[exp.Expr], str] = {exp.Upper: "upper", exp.Lower: "lower"}
_CASTS = {"DOUBLE": "cast_double", "BIGINT": "cast_bigint", "STRING": "cast_string"}
_KNOWN = (
    "values of different rows can be combined with comparisons, arithmetic, AND, OR, NOT, IS NULL, "
    "IN, BETWEEN, CASE, IF, coalesce, abs, least, greatest, concat, LIKE, upper, lower, length, "
    "round and casts; an expression over the current row alone can use any function."
)


class ConditionCompiler:
    """Lowers the condition of one variable."""

    def __init__(self, leaves: NavigationReader, variable: str) -> None:
        self.leaves, self.variable = leaves, variable

    def lower(self, node: exp.Expr) -> Expression:
        """The whole condition."""
        made = self.made(node)
        if made.type not in (BOOLEAN, NULL):
            raise self.leaves.unsupported(
                f"the condition of {self.variable} must be BOOLEAN, got {made.type.name}"
            )
        return made.expression

    def made(self, node: exp.Expr) -> TypedExpression:
        if isinstance(node, exp.Paren):
            return self.made(node.this)
        if isinstance(node, exp.Interval):
            return self.interval(node)
        if constant := _constant(node):
            return constant
        if self.of_row(node):
            # There always is a current row, so Spark can compute the column.
            column, type = self.leaves.inputs.column(node, self.leaves.origin)
            return TypedExpression(Value(column, RowNavigation()), type)
        return self.leaves.leaf(node) or self.operation(node)

    def interval(self, node: exp.Interval) -> TypedExpression:
        try:
            length = duration_us(f"{node.this.name} {node.args.get('unit') or ''}".strip())
        except ValueError as error:
            raise self.leaves.unsupported(f"the interval is not valid: {error}") from error
        return TypedExpression(Literal(length), INTERVAL)

    def of_row(self, node: exp.Expr) -> bool:
        """Whether an expression refers to the current row alone."""
        tables = {column.table.upper() for column in node.find_all(exp.Column)}
        called = (call.name.lower() for call in node.find_all(exp.Anonymous))
        return tables <= {"", self.variable} and not any(
            name.removeprefix("final_").startswith(("nav_", "agg_")) for name in called
        )

    def operation(self, node: exp.Expr) -> TypedExpression:
        kind = type(node)
        if kind in _LOGIC:
            return self.call(_LOGIC[kind], [node.this, node.expression], BOOLEAN)
        if isinstance(node, exp.Not):
            return self.call("not", [node.this], BOOLEAN)
        if kind in _COMPARISONS:
            return self.compared(_COMPARISONS[kind], [node.this, node.expression])
        if kind in _ARITHMETIC:
            return self.arithmetic(_ARITHMETIC[kind], node)
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return self.call("is_null", [node.this], BOOLEAN)
        if isinstance(node, exp.In) and node.expressions:
            return self.compared("in", [node.this, *node.expressions])
        if isinstance(node, exp.Between):
            return self.compared("between", [node.this, node.args["low"], node.args["high"]])
        if isinstance(node, exp.Case | exp.If):
            return self.case(node)
        return self.function(node)

    def function(self, node: exp.Expr) -> TypedExpression:
        kind = type(node)
        if isinstance(node, exp.Coalesce | exp.Least | exp.Greatest):
            return self.alike(node.key, [node.this, *node.expressions])
        if isinstance(node, exp.Neg | exp.Abs):
            return self.alike("neg" if isinstance(node, exp.Neg) else "abs", [node.this])
        if isinstance(node, exp.Round):
            digits = [node.args["decimals"]] if node.args.get("decimals") else []
            return self.call("round", [node.this, *digits], DOUBLE)
        if isinstance(node, exp.Concat):
            return self.call("concat", node.expressions, TEXT)
        if isinstance(node, exp.DPipe):
            return self.call("concat", [node.this, node.expression], TEXT)
        if isinstance(node, exp.Like):
            found = self.call("like", [node.this, node.expression], BOOLEAN)
            if not node.args.get("negate"):
                return found
            return TypedExpression(FunctionCall("not", (found.expression,)), BOOLEAN)
        if kind in _TEXTS:
            return self.call(_TEXTS[kind], [node.this], TEXT)
        if isinstance(node, exp.Length):
            return self.call("length", [node.this], BIGINT)
        if isinstance(node, exp.Cast):
            to = Type.parse(sql_of(node.to))
            if to.name in _CASTS:
                return self.call(_CASTS[to.name], [node.this], to)
        raise self.leaves.unsupported(
            f"'{_said(node)}' combines several rows in a way that is not supported", _KNOWN
        )

    def call(self, name: str, nodes: Sequence[exp.Expr], type: Type) -> TypedExpression:
        parts = tuple(self.made(node).expression for node in nodes)
        return TypedExpression(FunctionCall(name, parts), type)

    def compared(self, name: str, nodes: Sequence[exp.Expr]) -> TypedExpression:
        return TypedExpression(self.alike(name, nodes).expression, BOOLEAN)

    def alike(self, name: str, nodes: Sequence[exp.Expr]) -> TypedExpression:
        """A call whose arguments must have comparable types."""
        parts = [self.made(node) for node in nodes]
        kinds = {_kind(part.type): part.type for part in parts if part.type != NULL}
        if len(kinds) > 1:
            said = " with ".join(type.name for type in kinds.values())
            raise self.leaves.unsupported(
                f"'{name}' combines {said}", "convert them to one type with CAST."
            )
        type = next((p.type for p in parts if p.type == DOUBLE), None)
        made = type or next(iter(kinds.values()), NULL)
        return TypedExpression(FunctionCall(name, tuple(part.expression for part in parts)), made)

    def arithmetic(self, name: str, node: exp.Expr) -> TypedExpression:
        left, right = self.made(node.this), self.made(node.expression)
        made = _arithmetic_type(name, left.type, right.type)
        if made is None:
            said = f"{left.type.name} {name} {right.type.name}"
            raise self.leaves.unsupported(
                f"{said} is not supported", "convert them to one type with CAST."
            )
        return TypedExpression(FunctionCall(name, (left.expression, right.expression)), made)

    def case(self, node: exp.Case | exp.If) -> TypedExpression:
        """CASE WHEN … or if(…), as alternating conditions and values, and the default."""
        if isinstance(node, exp.If):
            branches, last = [node], node.args.get("false")
        else:
            branches, last = node.args["ifs"], node.args.get("default")
        subject = node.this if isinstance(node, exp.Case) else None
        conditions = [
            exp.EQ(this=subject.copy(), expression=b.this.copy()) if subject else b.this
            for b in branches
        ]
        values = self.alike("coalesce", [*(b.args["true"] for b in branches), last or exp.null()])
        assert isinstance(values.expression, FunctionCall)
        *made, otherwise = values.expression.arguments
        tests = [self.made(condition).expression for condition in conditions]
        pairs = [part for pair in zip(tests, made, strict=True) for part in pair]
        return TypedExpression(FunctionCall("case", (*pairs, otherwise)), values.type)


def _constant(node: exp.Expr) -> TypedExpression | None:
    if isinstance(node, exp.Null):
        return TypedExpression(Literal(None), NULL)
    if isinstance(node, exp.Boolean):
        return TypedExpression(Literal(bool(node.this)), BOOLEAN)
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        return TypedExpression(Literal(node.name), TEXT)
    whole = node.name.isdecimal()
    return TypedExpression(
        Literal(int(node.name) if whole else float(node.name)), BIGINT if whole else DOUBLE
    )


def _kind(type: Type) -> str:
    return "number" if type.numeric else type.spark


def _arithmetic_type(sign: str, left: Type, right: Type) -> Type | None:
    """The type of a sum, difference, product, quotient or remainder; None if there is none."""
    if NULL in (left, right):
        return left if right == NULL else right
    if left.numeric and right.numeric:
        return DOUBLE if sign == "/" or DOUBLE in (left, right) else BIGINT
    if sign == "-" and left == right == TIMESTAMP:
        return INTERVAL
    if sign in {"+", "-"} and right == INTERVAL and left in (TIMESTAMP, INTERVAL):
        return left
    if sign == "+" and left == INTERVAL and right == TIMESTAMP:
        return TIMESTAMP
    return INTERVAL if sign in {"*", "/"} and left == INTERVAL and right.numeric else None


def _said(node: exp.Expr) -> str:
    """The text as the user wrote it."""
    return sql_of(node).replace("nav_", "").replace("agg_", "").replace("final_", "FINAL ")
