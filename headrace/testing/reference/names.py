"""From text to a tree whose every column is a key of the row.

`read` parses a SELECT. `NameScope` knows the columns in reach; `resolve` replaces each column by
its one meaning, `alias.column` in lower case, so that two spellings of one thing are equal trees:
that is how `SELECT url … GROUP BY c.URL` is understood. Names of the select list are in reach after
columns, or before them in HAVING and ORDER BY (but never inside an aggregate), as in Spark.
tests/testing/test_views.py checks the precedence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token

from headrace.core.errors import BadDefinition, UnknownColumn, Unsupported
from headrace.testing.reference.aggregates import aggregating
from headrace.testing.reference.values import Key

# Columns that every event has beside the declared ones; SELECT * leaves them out.
HIDDEN = ("_partition", "_offset", "_arrived_at", "_late", "_lateness", "_raw")


class _Dialect(Spark):
    """Spark's, but `window` is a function's name everywhere, also just after GROUP BY."""

    class Tokenizer(Spark.Tokenizer):
        KEYWORDS = {  # noqa: RUF012
            word: token for word, token in Spark.Tokenizer.KEYWORDS.items() if word != "WINDOW"
        }
        # Since Spark 4 a doubled quote inside a literal is one quote, not the end of a literal.
        STRING_ESCAPES = ["\\", "'"]  # noqa: RUF012

    class Parser(SparkParser):
        # payload:a.b is a value within JSON.
        COLON_IS_VARIANT_EXTRACT = True
        COLON_CHAIN_IS_SINGLE_EXTRACT = False
        # Ours take a limit, which sqlglot would drop.
        FUNCTIONS = {  # noqa: RUF012
            name: build
            for name, build in SparkParser.FUNCTIONS.items()
            if name not in {"COLLECT_LIST", "COLLECT_SET"}
        }


def read(text: str) -> exp.Select:
    """Parse a SELECT in Spark's dialect."""
    try:
        tree = sqlglot.parse_one(text, read=_Dialect)
    except sqlglot.errors.SqlglotError as problem:
        raise BadDefinition("the query cannot be parsed", detail=str(problem)) from problem
    if not isinstance(tree, exp.Select):
        raise Unsupported(f"the reference interpreter supports only SELECT, got: {text[:60]}")
    return tree.transform(_one_spelling).assert_is(exp.Select)


def tokens_of(text: str) -> list[Token]:
    """The words of a text, each with its place."""
    return list(_Dialect().tokenize(text))


def _one_spelling(node: exp.Expr) -> exp.Expr:
    """Synonyms that sqlglot leaves apart, and parentheses, which mean nothing in a tree."""
    if isinstance(node, exp.Any) and isinstance(node.this, exp.Paren):
        return exp.LogicalOr(this=node.this.this)
    if isinstance(node, exp.Paren):
        return _one_spelling(node.this)
    if not isinstance(node, exp.Anonymous):
        return node
    name = node.name.lower()
    synonyms = {"every": exp.LogicalAnd, "some": exp.LogicalOr, "any": exp.LogicalOr}
    if name in synonyms:
        return synonyms[name](this=node.expressions[0])
    return exp.Anonymous(this=name, expressions=node.expressions)


@dataclass(frozen=True, slots=True)
class VisibleColumn:
    """A column in reach: `alias.name`."""

    alias: str
    name: str
    hidden: bool = False

    @property
    def key(self) -> Key:
        return self.alias.lower(), self.name.lower()


@dataclass(frozen=True, slots=True)
class NameScope:
    """What a name can mean: columns in reach, then (or first) names of the select list."""

    fields: tuple[VisibleColumn, ...]
    names: Mapping[str, exp.Expr] = field(default_factory=dict)
    names_first: bool = False

    def column(self, node: exp.Column) -> exp.Expr | None:
        """The one column of that name; declared ones come before hidden ones."""
        name, alias = node.name.lower(), node.text("table").lower()
        found = [f for f in self.fields if f.key == (alias or f.key[0], name)]
        found = [f for f in found if not f.hidden] or found[:1]
        if len(found) > 1:
            raise UnknownColumn(
                f"column reference '{node.name}' is ambiguous: {len(found)} relations have it",
                hint="qualify it, such as a.b.",
            )
        return key_column(found[0].key) if found else None

    def named(self, node: exp.Column) -> exp.Expr | None:
        found = None if node.text("table") else self.names.get(node.name.lower())
        return None if found is None else found.copy()


def key_column(key: Key) -> exp.Column:
    """The tree for a key of the row."""
    return exp.Column(this=exp.to_identifier(key[1]), table=exp.to_identifier(key[0]))


_COMMUTATIVE = (exp.Add, exp.Mul, exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.And, exp.Or)


def resolve(node: exp.Expr, scope: NameScope) -> exp.Expr:
    """The same expression with each column replaced by what it means. Operands that may change
    places come in one order, so that `a + b` and `b + a` are one key.
    """

    def change(part: exp.Expr) -> exp.Expr:
        if scope.names_first and aggregating(part):
            return resolve(part, NameScope(scope.fields))
        return _meaning(part, scope) if isinstance(part, exp.Column) else part

    return _in_one_order(node.copy().transform(change))


def _in_one_order(node: exp.Expr) -> exp.Expr:
    for part in list(node.find_all(*_COMMUTATIVE)):
        operands = sorted((part.this, part.expression), key=repr)
        part.set("this", operands[0])
        part.set("expression", operands[1])
    return node


def _meaning(node: exp.Column, scope: NameScope) -> exp.Expr:
    readers = (scope.named, scope.column) if scope.names_first else (scope.column, scope.named)
    found = readers[0](node) or readers[1](node) or _struct_field(node, scope)
    if found is None:
        names = ", ".join(f.name for f in scope.fields if not f.hidden)
        raise UnknownColumn(
            f"there is no column '{node.sql()}'", detail=f"available columns: {names}."
        )
    return found


def _struct_field(node: exp.Column, scope: NameScope) -> exp.Expr | None:
    """`w.start` where w is a column that holds a window, or `a.b.c` where a holds an object."""
    if not node.text("table"):
        return None
    above = {"table": node.args.get("db"), "db": node.args.get("catalog")}
    whole = exp.Column(this=node.args["table"].copy(), **above)
    found = scope.column(whole) or scope.named(whole) or _struct_field(whole, scope)
    return None if found is None else exp.Dot(this=found, expression=node.this.copy())
