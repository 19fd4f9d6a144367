"""Headrace's SQL is Spark's; sqlglot knows its structure.

sqlglot knows several hundred functions and writes them again in its own way: it drops a format, or
an unknown argument. Here it knows the structure of SQL and the few functions to which the compiler
gives a meaning; every other call is a name with arguments. What Spark reads is written by
`headrace.define.verbatim`. `Translatable` is for SQL that is translated for another engine, which
requires the functions. sqlglot takes `window` for the keyword of a named window, so `GROUP BY
window(ts, '1 hour')` fails. Here it is a plain name unless a definition follows, as in `WINDOW w AS
(…)`; collect_list and collect_set are plain names too. tests/define/test_dialect.py checks the
forms that were misread.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from headrace.core.errors import BadDefinition
from headrace.core.origin import Origin
from headrace.core.schema import ComputedExpression
from headrace.define.syntax_errors import select_expected, syntax_error, unclosed_quote
from headrace.define.verbatim import IntervalParser, VerbatimGenerator, VerbatimParser

_UNDERSTOOD = {
    "ABS", "ANY_VALUE", "APPROX_COUNT_DISTINCT", "APPROX_PERCENTILE", "APPROX_TOP_K", "ARRAY_AGG",
    "AVG", "BOOL_AND", "BOOL_OR", "COALESCE", "CONCAT", "CORR", "COUNT", "COUNT_IF", "COVAR_POP",
    "COVAR_SAMP", "CUME_DIST", "DENSE_RANK", "EXPLODE", "FIRST", "FIRST_VALUE", "GREATEST", "IF",
    "IFNULL", "KURTOSIS", "LAG", "LAST", "LAST_VALUE", "LCASE", "LEAD", "LEAST", "LENGTH", "LOWER",
    "MAX", "MEDIAN", "MIN", "NTH_VALUE", "NTILE", "NULLIF", "NVL",
    "PERCENT_RANK", "PERCENTILE_APPROX", "RANK", "ROUND", "ROW_NUMBER", "SKEWNESS", "STDDEV",
    "STDDEV_POP", "STDDEV_SAMP", "SUM", "UCASE", "UPPER", "VARIANCE", "VAR_POP", "VAR_SAMP",
}  # fmt: skip
# Calls whose arguments are not separated by commas alone.
_SYNTAX = {
    "APPROX_PERCENTILE", "CAST", "EXTRACT", "OVERLAY", "PERCENTILE_APPROX",
    "POSITION", "SUBSTR", "SUBSTRING", "TRIM", "TRY_CAST",
}  # fmt: skip


class Headrace(Spark):
    """Structure, and the functions that the compiler understands."""

    class Tokenizer(Spark.Tokenizer):
        # Spark reads 'it''s' as one text, and sqlglot as two that are put together.
        STRING_ESCAPES: ClassVar[list[str]] = ["'", "\\"]
        KEYWORDS: ClassVar[dict[str, Any]] = {
            word: token for word, token in Spark.Tokenizer.KEYWORDS.items() if word != "WINDOW"
        }

    class Parser(IntervalParser):
        # payload:a.b reads a path of a VARIANT.
        COLON_IS_VARIANT_EXTRACT: ClassVar[bool] = True
        COLON_CHAIN_IS_SINGLE_EXTRACT: ClassVar[bool] = False
        FUNCTIONS: ClassVar[dict[str, Any]] = {
            name: build for name, build in SparkParser.FUNCTIONS.items() if name in _UNDERSTOOD
        }
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parse for name, parse in SparkParser.FUNCTION_PARSERS.items() if name in _SYNTAX
        }

    class Generator(VerbatimGenerator):
        TYPE_MAPPING: ClassVar[dict[Any, str]] = {
            **SparkGenerator.TYPE_MAPPING,
            # sqlglot writes TIMESTAMP, which Spark would read as another value.
            exp.DType.TIME: "TIME",
        }
        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            **SparkGenerator.TRANSFORMS,
            # sqlglot writes get_json_object, which takes a text and not a VARIANT.
            exp.JSONExtract: lambda self, node: f"{self.sql(node, 'this')}:{_path(node)}",
        }


def _path(node: exp.JSONExtract) -> str:
    """The path behind the colon, as Spark reads it."""
    steps = "".join(_step(part) for part in node.expression.expressions)
    return steps.removeprefix(".")


def _step(part: exp.Expr) -> str:
    if isinstance(part, exp.JSONPathSubscript):
        return f"[{part.this}]"
    if isinstance(part, exp.JSONPathKey):
        return f".`{part.this}`" if "`" not in str(part.this) else f"['{part.this}']"
    return ""


class Verbatim(Headrace):
    """The same, with every expression exactly as it was written."""

    class Parser(VerbatimParser):
        COLON_IS_VARIANT_EXTRACT: ClassVar[bool] = True
        COLON_CHAIN_IS_SINGLE_EXTRACT: ClassVar[bool] = False
        FUNCTIONS = Headrace.Parser.FUNCTIONS
        FUNCTION_PARSERS = Headrace.Parser.FUNCTION_PARSERS


class Translatable(Headrace):
    """The same text with all functions known, so that it can be translated to another dialect."""

    class Parser(IntervalParser):
        COLON_IS_VARIANT_EXTRACT: ClassVar[bool] = True
        COLON_CHAIN_IS_SINGLE_EXTRACT: ClassVar[bool] = False
        # Ours take a limit, which sqlglot would drop.
        FUNCTIONS: ClassVar[dict[str, Any]] = {
            name: build
            for name, build in SparkParser.FUNCTIONS.items()
            if name not in {"COLLECT_LIST", "COLLECT_SET"}
        }


def parse_query(text: str, origin: Origin) -> exp.Query:
    """The structure of a SELECT, or an error at the right line of the user's file."""
    return _parsed(text, origin, Verbatim())


def parse_select(text: str, origin: Origin) -> exp.Select:
    """The same of a text that cannot be a UNION, such as one that the compiler has written."""
    select = parse_query(text, origin)
    assert isinstance(select, exp.Select)
    return select


def parse_read(text: str, origin: Origin) -> exp.Query:
    """A SELECT that Spark never reads, such as one over answers: in half the time."""
    return _parsed(text, origin, Headrace())


def parse_expression(said: ComputedExpression) -> exp.Expr:
    """The one expression that a computed column has."""
    query = parse_query(f"SELECT {said.sql}", said.origin)
    parts = [part for part, value in query.args.items() if value]
    if parts != ["expressions"] or len(query.expressions) != 1:
        raise BadDefinition(f"expected one expression, got '{said.sql}'", origin=said.origin)
    found: exp.Expr = query.expressions[0]
    if isinstance(found, exp.Alias) or found.is_star:
        raise BadDefinition(f"expected one expression, got '{said.sql}'", origin=said.origin)
    return found


def parse_translatable(text: str, origin: Origin) -> exp.Query:
    """A SELECT that another engine is to run."""
    return _parsed(text, origin, Translatable())


def _parsed(text: str, origin: Origin, dialect: Dialect) -> exp.Query:
    tokens = tokens_of(text, origin)
    first = tokens[0].text if tokens else ""
    try:
        tree = dialect.parser().parse(tokens, text)
    except ParseError as error:
        raise syntax_error(error, first, origin) from error
    except RecursionError as error:
        raise BadDefinition("the SELECT is nested too deeply", origin=origin) from error
    statements = [statement for statement in tree if statement is not None]
    if len(statements) > 1 or not tokens:
        raise BadDefinition("expected a single SELECT", origin=origin)
    if not isinstance(statements[0], exp.Query):
        raise select_expected(first, origin)
    return statements[0]


def tokens_of(text: str, origin: Origin) -> list[Token]:
    """The words of a text that begins at `origin`."""
    try:
        return _with_named_windows(Headrace().tokenize(text))
    except TokenError as error:
        raise unclosed_quote(text, error, Headrace().tokenize, origin) from error


def _with_named_windows(tokens: list[Token]) -> list[Token]:
    """The tokens with `WINDOW` as a keyword where `w AS (` follows."""
    for n, token in enumerate(tokens[:-3]):
        after = [following.token_type for following in tokens[n + 2 : n + 4]]
        defines = after == [TokenType.ALIAS, TokenType.L_PAREN]
        if defines and token.token_type == TokenType.VAR and token.text.upper() == "WINDOW":
            place = token.line, token.col, token.start, token.end
            tokens[n] = Token(TokenType.WINDOW, token.text, *place, token.comments)
    return tokens


def sql_of(node: exp.Expr) -> str:
    """The node as Spark SQL on one line, whatever its author's formatting was."""
    return node.sql(dialect=Headrace, comments=False, normalize_functions="lower")
