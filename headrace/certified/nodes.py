"""sqlglot's nodes in Spark's terms: literals, the types that casts name, and calls by their names.

sqlglot has a class of its own for some functions, with arguments under names; here every call is a
name and arguments in order, as Spark's pages write it.
"""

from __future__ import annotations

from sqlglot import exp

from headrace.certified.typed import TypedSql
from headrace.core.errors import BadQuery

# sqlglot's own names for types that Spark calls otherwise.
_TYPES = {
    "TEXT": "STRING", "VARCHAR": "STRING", "TIMESTAMPTZ": "TIMESTAMP", "TIMESTAMPLTZ": "TIMESTAMP",
    "TIMESTAMPNTZ": "TIMESTAMP_NTZ", "VARBINARY": "BINARY",
}  # fmt: skip


def number(text: str) -> TypedSql:
    """A number as it is written: INT or BIGINT if it fits, a decimal with its digits, or a
    double.
    """
    if "e" in text.lower():
        return TypedSql(f"CAST({text} AS DOUBLE)", "DOUBLE", literal=text)
    if "." in text:
        whole, _, fraction = text.lstrip("-").partition(".")
        digits = max(len(whole.lstrip("0")) + len(fraction), len(fraction), 1)
        type = f"DECIMAL({digits},{len(fraction)})"
        return TypedSql(f"CAST({text} AS {type})", type, literal=text)
    value = int(text)
    if -(2**31) <= value < 2**31:
        return TypedSql(f"CAST({text} AS INTEGER)", "INT", literal=text)
    if -(2**63) <= value < 2**63:
        return TypedSql(f"CAST({text} AS BIGINT)", "BIGINT", literal=text)
    type = f"DECIMAL({len(text.lstrip('-'))},0)"
    return TypedSql(f"CAST({text} AS {type})", type, literal=text)


def type_named(node: exp.DataType) -> str:
    """The type that a cast names."""
    word = str(node.this.name)
    word = _TYPES.get(word, word)
    if word != "DECIMAL":
        return word
    digits = [int(part.this.name) for part in node.expressions] or [10, 0]
    return f"DECIMAL({digits[0]},{digits[1] if len(digits) > 1 else 0})"


_RENAMED = {
    "stddevsamp": "stddev_samp", "stddevpop": "stddev_pop", "variancepop": "var_pop",
    "variance": "var_samp", "variance_pop": "var_pop", "logical_and": "bool_and",
    "logical_or": "bool_or", "countif": "count_if", "covarpop": "covar_pop",
    "covarsamp": "covar_samp", "rownumber": "row_number",
}  # fmt: skip


def call_of(node: exp.Expr) -> tuple[str, list[exp.Expr]]:
    """The name of a function as Spark knows it, and its arguments in order."""
    if isinstance(node, exp.Anonymous):
        return _with_unit(str(node.this).lower(), list(node.expressions))
    match node:
        case exp.Substring():
            given = [node.this, node.args.get("start"), node.args.get("length")]
            return "substring", [part for part in given if part is not None]
        case exp.Trim():
            side = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(node.args.get("position") or "")
            what = node.args.get("expression")
            if what is None:
                return side or "trim", [node.this]
            return (side, [what, node.this]) if side else ("btrim", [node.this, what])
        case exp.StrPosition():
            return "locate", [node.args["substr"], node.this]
        case exp.Count():
            more = node.expressions
            return "count", [node.this, *more]
    names = type(node).sql_names() if isinstance(node, exp.Func) else [node.key]
    name = names[0].lower()
    given = [value for key in node.arg_types for value in _listed(node.args.get(key))]
    return _RENAMED.get(name, name), given


def _with_unit(name: str, arguments: list[exp.Expr]) -> tuple[str, list[exp.Expr]]:
    """timestampdiff(MONTH, a, b), whose unit sqlglot takes for a column."""
    if name not in {"timestampdiff", "datediff", "date_diff"} or len(arguments) != 3:
        return name, arguments
    if not isinstance(arguments[0], exp.Column) or arguments[0].table:
        raise BadQuery(f"the first argument of {name} must be a unit such as MONTH")
    return "timestampdiff", [exp.Literal.string(arguments[0].name), *arguments[1:]]


def _listed(value: object) -> list[exp.Expr]:
    if isinstance(value, list):
        return [item for item in value if isinstance(item, exp.Expr)]
    return [value] if isinstance(value, exp.Expr) else []
