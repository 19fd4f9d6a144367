"""A condition of DEFINE: what of it Spark evaluates, and what the matcher does.

What speaks only of the row under test is a column, whatever SQL it is. The operations between
several rows are few, and each knows what types it takes: nothing is converted silently.
tests/compile/test_matched.py checks both.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headrace.compile.navigation import DOUBLE, TEXT, Leaf, Leaves
from headrace.core.pattern import Constant, Expression, FunctionCall, RowNavigation, Value
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
    "between values of different rows there are comparisons, arithmetic, AND, OR, NOT, IS NULL, "
    "IN, BETWEEN, CASE, IF, coalesce, abs, least, greatest, concat, LIKE, upper, lower, length, "
    "round and casts; any function may stand where all columns are of the row under test."
)


class Conditions:
    """Lowers the condition of one variable."""

    def __init__(self, leaves: Leaves, variable: str) -> None:
        self.leaves, self.variable = leaves, variable

    def lower(self, node: exp.Expr) -> Expression:
        """The whole condition."""
        made = self.made(node)
        if made.type not in (BOOLEAN, NULL):
            raise self.leaves.refused(f"the condition of {self.variable} is no condition")
        return made.expression

    def made(self, node: exp.Expr) -> Leaf:
        if isinstance(node, exp.Paren):
            return self.made(node.this)
        if constant := _constant(node):
            return constant
        if self.of_row(node):
            # There always is a row under test, so nothing is lost by asking Spark.
            column, type = self.leaves.inputs.column(node, self.leaves.origin)
            return Leaf(Value(column, RowNavigation()), type)
        return self.leaves.leaf(node) or self.operation(node)

    def of_row(self, node: exp.Expr) -> bool:
        """Whether a part speaks of the row under test alone."""
        tables = {column.table.upper() for column in node.find_all(exp.Column)}
        called = (call.name.lower() for call in node.find_all(exp.Anonymous))
        return tables <= {"", self.variable} and not any(
            name.removeprefix("final_").startswith(("nav_", "agg_")) for name in called
        )

    def operation(self, node: exp.Expr) -> Leaf:
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

    def function(self, node: exp.Expr) -> Leaf:
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
            return self.call("like", [node.this, node.expression], BOOLEAN)
        if kind in _TEXTS:
            return self.call(_TEXTS[kind], [node.this], TEXT)
        if isinstance(node, exp.Length):
            return self.call("length", [node.this], BIGINT)
        if isinstance(node, exp.Cast):
            to = Type.parse(sql_of(node.to))
            if to.name in _CASTS:
                return self.call(_CASTS[to.name], [node.this], to)
        raise self.leaves.refused(
            f"'{_said(node)}' combines several rows in a way that is not known", _KNOWN
        )

    def call(self, name: str, nodes: Sequence[exp.Expr], type: Type) -> Leaf:
        parts = tuple(self.made(node).expression for node in nodes)
        return Leaf(FunctionCall(name, parts), type)

    def compared(self, name: str, nodes: Sequence[exp.Expr]) -> Leaf:
        return Leaf(self.alike(name, nodes).expression, BOOLEAN)

    def alike(self, name: str, nodes: Sequence[exp.Expr]) -> Leaf:
        """A call whose arguments are of one kind."""
        parts = [self.made(node) for node in nodes]
        kinds = {_kind(part.type): part.type for part in parts if part.type != NULL}
        if len(kinds) > 1:
            said = " with ".join(type.name for type in kinds.values())
            raise self.leaves.refused(
                f"'{name}' takes {said} here", "bring them to one type with CAST."
            )
        type = next((p.type for p in parts if p.type == DOUBLE), None)
        made = type or next(iter(kinds.values()), NULL)
        return Leaf(FunctionCall(name, tuple(part.expression for part in parts)), made)

    def arithmetic(self, name: str, node: exp.Expr) -> Leaf:
        left, right = self.made(node.this), self.made(node.expression)
        made = _arithmetic_type(name, left.type, right.type)
        if made is None:
            said = f"{left.type.name} {name} {right.type.name}"
            raise self.leaves.refused(f"there is no {said}", "bring them to one type with CAST.")
        return Leaf(FunctionCall(name, (left.expression, right.expression)), made)

    def case(self, node: exp.Case | exp.If) -> Leaf:
        """CASE WHEN … or if(…), as conditions and values in turn, and what else."""
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
        return Leaf(FunctionCall("case", (*pairs, otherwise)), values.type)


def _constant(node: exp.Expr) -> Leaf | None:
    if isinstance(node, exp.Null):
        return Leaf(Constant(None), NULL)
    if isinstance(node, exp.Boolean):
        return Leaf(Constant(bool(node.this)), BOOLEAN)
    if isinstance(node, exp.Interval):
        amount, unit = node.this, node.args.get("unit")
        return Leaf(Constant(duration_us(f"{amount.name} {unit or ''}".strip())), INTERVAL)
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        return Leaf(Constant(node.name), TEXT)
    whole = node.name.isdecimal()
    return Leaf(
        Constant(int(node.name) if whole else float(node.name)), BIGINT if whole else DOUBLE
    )


def _kind(type: Type) -> str:
    return "number" if type.numeric else type.spark


def _arithmetic_type(sign: str, left: Type, right: Type) -> Type | None:
    """The type of a sum, difference, product, quotient or rest; None if there is none."""
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
