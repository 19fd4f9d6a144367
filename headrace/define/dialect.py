"""Headrace's SQL is Spark's; this dialect mends what sqlglot misreads in it.

sqlglot takes `window` for the keyword of a named window, so `GROUP BY window(ts, '1 hour')` fails.
Here it is a plain name, and so are collect_list and collect_set. Spark's own parser stays the
authority on what is valid.
tests/define/test_dialect.py checks the forms that were misread.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token

from headrace.core.errors import BadDefinition
from headrace.core.origin import Origin
from headrace.define.mistakes import no_select, unclosed, unread


class Headrace(Spark):
    class Tokenizer(Spark.Tokenizer):
        # Spark reads 'it''s' as one text, and sqlglot as two that are put together.
        STRING_ESCAPES: ClassVar[list[str]] = ["'", "\\"]
        KEYWORDS: ClassVar[dict[str, Any]] = {
            word: token for word, token in Spark.Tokenizer.KEYWORDS.items() if word != "WINDOW"
        }

    class Parser(SparkParser):
        # Ours take a limit, which sqlglot would drop.
        FUNCTIONS: ClassVar[dict[str, Any]] = {
            name: build
            for name, build in SparkParser.FUNCTIONS.items()
            if name not in {"COLLECT_LIST", "COLLECT_SET"}
        }


def parse_query(text: str, origin: Origin) -> exp.Query:
    """The structure of a SELECT, or an error at the right line of the user's file."""
    tokens = tokens_of(text, origin)
    first = tokens[0].text if tokens else ""
    try:
        tree = Headrace().parser().parse(tokens, text)
    except ParseError as error:
        raise unread(error, first, origin) from error
    statements = [statement for statement in tree if statement is not None]
    if len(statements) > 1 or not tokens:
        raise BadDefinition("a SELECT is expected here, and nothing else", origin=origin)
    if not isinstance(statements[0], exp.Query):
        raise no_select(first, origin)
    return statements[0]


def tokens_of(text: str, origin: Origin) -> list[Token]:
    """The words of a text that begins at `origin`."""
    try:
        return Headrace().tokenize(text)
    except TokenError as error:
        raise unclosed(text, error, Headrace().tokenize, origin) from error


def sql_of(node: exp.Expr) -> str:
    """The node as Spark SQL on one line, whatever its author's formatting was."""
    return node.sql(dialect=Headrace, comments=False, normalize_functions="lower")
