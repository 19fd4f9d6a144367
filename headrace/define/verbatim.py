"""Keeps expressions exactly as written for Spark.

The parser notes for each expression which tokens it was read from, and the generator writes these
tokens again as long as the expression is unchanged. Only white space, comments and the case of
operators and functions become uniform, so that formatting does not change a plan. What sqlglot
makes of a function, a literal or an operator therefore cannot change what Spark reads. Where the
compiler has replaced a part of an expression, sqlglot writes it, around the unchanged parts.
tests/define/test_verbatim.py checks the forms, tests/spark/test_verbatim.py what Spark makes of
all examples of its own pages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any, NamedTuple

from sqlglot import exp
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

_TOKENS, _WRITTEN = "tokens", "written"
# The levels of precedence: each expression comes out of one of them.
_LEVELS = (
    "_parse_assignment", "_parse_disjunction", "_parse_conjunction", "_parse_equality",
    "_parse_comparison", "_parse_range", "_parse_bitwise", "_parse_term", "_parse_factor",
    "_parse_unary",
)  # fmt: skip
_OPERATORS = {
    TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.IN, TokenType.IS, TokenType.NULL,
    TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE, TokenType.BETWEEN, TokenType.CASE,
    TokenType.WHEN, TokenType.THEN, TokenType.ELSE, TokenType.DISTINCT,
    TokenType.OVER, TokenType.PARTITION_BY, TokenType.ORDER_BY, TokenType.TRUE, TokenType.FALSE,
    TokenType.ALIAS, TokenType.WHERE,
}  # fmt: skip
_SIGNS = {TokenType.DASH, TokenType.PLUS, TokenType.TILDE}


class IntervalParser(SparkParser):
    """Keeps the text of an interval."""

    def _parse_interval_span(
        self, this: exp.Expr, parse_function_unit: bool = True
    ) -> exp.Interval:
        span = super()._parse_interval_span(this, parse_function_unit)
        # sqlglot takes one number and unit out of a text and drops the rest, such as a sign.
        dropped = span.this is not this and not exp.INTERVAL_STRING_RE.fullmatch(this.name)
        return exp.Interval(this=this) if this.is_string and dropped else span


class VerbatimParser(IntervalParser):
    """Notes what every expression was read from."""

    def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
        trees = super().parse(raw_tokens, sql)
        if len(trees) == 1 and trees[0] is not None:
            rewritten = _around_variants(trees[0])
            for node in trees[0].walk():
                if (span := node.meta_get(_TOKENS)) and id(node) not in rewritten:
                    # The hash is that of the whole expression: another one says that it changed.
                    node.meta[_WRITTEN] = join_tokens(raw_tokens[slice(*span)], sql), hash(node)
        return trees


def _noting(level: Callable[..., exp.Expr | None]) -> Callable[..., exp.Expr | None]:
    def parse(self: Any, *given: Any, **named: Any) -> exp.Expr | None:
        first = self._index
        node = level(self, *given, **named)
        # An operand that is handed in began earlier: the level that read it notes the whole.
        begun = given and isinstance(given[0], exp.Expr)
        if isinstance(node, exp.Expr) and self._index > first and not begun:
            node.meta[_TOKENS] = first, self._index
        return node

    return parse


for _name in _LEVELS:
    setattr(VerbatimParser, _name, _noting(getattr(SparkParser, _name)))


def _around_variants(tree: exp.Expr) -> set[int]:
    """The casts from a VARIANT and all that they are in: these are never written as they were."""
    found: set[int] = set()
    for cast in filter(is_from_variant, tree.find_all(exp.Cast)):
        node: exp.Expr | None = cast
        while node is not None:
            found.add(id(node))
            node = node.parent
    return found


def is_from_variant(cast: exp.Cast) -> bool:
    return isinstance(cast.this.unnest(), exp.JSONExtract)


class VerbatimGenerator(SparkGenerator):
    """Writes unchanged expressions as they were written. A cast from a part of a VARIANT is tried:
    of other casts Spark makes NULL of a bad value, of these it fails.
    """

    def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
        return super().cast_sql(expression, "TRY_" if is_from_variant(expression) else safe_prefix)

    def sql(
        self, expression: str | exp.Expr | None, key: str | None = None, comment: bool = True
    ) -> str:
        if isinstance(expression, exp.Expr) and key is None:
            text, unchanged = expression.meta_get(_WRITTEN, ("", 0))
            if text and hash(expression) == unchanged:
                return str(text)
        return super().sql(expression, key, comment)


def join_tokens(tokens: Sequence[Token], sql: str) -> str:
    """The tokens on one line.

    >>> from sqlglot.dialects.spark import Spark
    >>> text = "Count( a.B )  filter(where c:d::int>- 1L) -- why"
    >>> join_tokens(Spark().tokenize(text), text)
    'count(a.B) FILTER (WHERE c:d::int > -1L)'
    """
    text, place, before = "", -1, _Word("", _Kind.START)
    for n, token in enumerate(tokens):
        if token.start == place:
            continue  # a number with a suffix, such as 1L, is several tokens
        place = token.start
        called = n + 1 < len(tokens) and tokens[n + 1].token_type is TokenType.L_PAREN
        word = _word(sql[token.start : token.end + 1], token.token_type, before, called)
        text += (" " if _apart(before, word) else "") + word.text
        before = word
    return text


class _Kind(Enum):
    """The kind of a word, which decides on the space beside it."""

    START = auto()
    NAME = auto()  # of a column, type or function
    VALUE = auto()
    OPERATOR = auto()
    SIGN = auto()  # a minus or plus that belongs to what follows
    OPEN = auto()
    CLOSE = auto()
    COMMA = auto()
    TIGHT = auto()  # a dot or colon between names


_KINDS = {
    TokenType.DOT: _Kind.TIGHT, TokenType.DCOLON: _Kind.TIGHT, TokenType.COLON: _Kind.TIGHT,
    TokenType.L_PAREN: _Kind.OPEN, TokenType.L_BRACKET: _Kind.OPEN, TokenType.COMMA: _Kind.COMMA,
    TokenType.R_PAREN: _Kind.CLOSE, TokenType.R_BRACKET: _Kind.CLOSE,
    TokenType.IDENTIFIER: _Kind.NAME, TokenType.STRING: _Kind.VALUE, TokenType.NUMBER: _Kind.VALUE,
    TokenType.RAW_STRING: _Kind.VALUE, TokenType.HEX_STRING: _Kind.VALUE,
}  # fmt: skip


class _Word(NamedTuple):
    text: str
    kind: _Kind


def _word(text: str, token: TokenType, before: _Word, called: bool) -> _Word:
    if token in _KINDS:
        return _Word(text, _KINDS[token])
    if token in _OPERATORS and before.kind is not _Kind.TIGHT:
        return _Word(text.upper(), _Kind.OPERATOR)
    if token is TokenType.FILTER and before.kind is _Kind.CLOSE:
        return _Word(text.upper(), _Kind.OPERATOR)  # elsewhere it is a function
    if token in _SIGNS and before.kind not in {_Kind.NAME, _Kind.VALUE, _Kind.CLOSE}:
        return _Word(text, _Kind.SIGN)
    if not (text[0].isalpha() or text[0] == "_"):
        return _Word(text, _Kind.OPERATOR)
    return _Word(text.lower() if called and before.kind is not _Kind.TIGHT else text, _Kind.NAME)


def _apart(before: _Word, word: _Word) -> bool:
    """Whether a space is between two words."""
    if before.kind in {_Kind.START, _Kind.OPEN, _Kind.TIGHT}:
        return False
    if word.kind in {_Kind.CLOSE, _Kind.COMMA, _Kind.TIGHT}:
        return False
    if word.kind is _Kind.OPEN:
        return before.kind in {_Kind.OPERATOR, _Kind.COMMA}
    if before.text == word.text and word.text in {"<", ">"}:
        return False  # a shift
    # Two signs would begin a comment.
    return before.kind is not _Kind.SIGN or word.kind is _Kind.SIGN
