"""Limits of SQL received over the network, checked before it is parsed: its length, its nesting,
and that it is one statement.

A hostile text can stall or overflow a parser, so this comes first. Quotes and comments are read as
Spark reads them. This module only refuses: a text that it misreads is still checked by Spark's
parser and the allow-lists. tests/spark/test_allowed_sql.py has the hostile texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from headrace.core.errors import BadQuery, LimitReached, Refused

HINT = "SQL received over the network must be one SELECT over the project's relations."
QUERY = "an ad-hoc query"
_TOKEN = re.compile(
    r"""(?P<comment>--(?:\\\n|[^\r\n])*|/\*(?!\+))
      | (?P<string>[rR]'[^']*'|[rR]"[^"]*"|'(?:\\.|''|[^'\\])*'|"(?:\\.|""|[^"\\])*")
      | (?P<quoted>`(?:``|[^`])*`)
      | (?P<open>[(\[{]|\b(?:CASE|BEGIN)\b|\b(?:ARRAY|MAP|STRUCT)\s*<)
      | (?P<close>[)\]}]|\bEND\b)
      | (?P<end>;)
      | (?P<word>\w+)
      | (?P<space>\s+)
      | (?P<other>.)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL | re.ASCII,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")


@dataclass(frozen=True, slots=True)
class SqlLimits:
    """Maximum sizes of a query; each is far above what a person writes."""

    text_max: int = 20_000
    depth_max: int = 64
    string_max: int = 10_000
    list_max: int = 1_000
    size_max: int = 10_000  # of the result of repeat, sequence and similar functions
    nodes_max: int = 5_000


def check_text(text: str, limits: SqlLimits, what: str = QUERY) -> None:
    """Refuse a query that is too large or has several statements; `what` is for the message."""
    check_size(text, limits)
    if "${" in text:  # Spark would substitute its settings and the process's environment
        raise Refused(f"{what} may not contain ${{…}}", hint="write concat('$', '{') for the text.")
    ended = False
    for kind, token in _tokens(text):
        if ended and kind != "end":
            raise Refused(f"{what} must be a single statement", hint=HINT)
        ended = ended or kind == "end"
        if kind == "other" and (token == "$" or not token.isascii()):
            raise Refused(f"{what} may not contain {token!r} outside of quotes", hint=HINT)


def check_size(text: str, limits: SqlLimits) -> None:
    """Refuse a text that is too long or nested too deeply."""
    if len(text) > limits.text_max:
        raise LimitReached(
            f"the query has {len(text):,} characters, and the limit is {limits.text_max:,}",
            hint="the limit is set by query.text_max.",
        )
    depth = 0
    for kind, token in _tokens(text):
        # ARRAY< is never counted as closed: `>` is also an operator, and types are short.
        depth += (kind == "open") - (kind == "close")
        _check_token(kind, token, depth, limits)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None  # `other` matches any character
        at = _comment_end(text, at) if match[0] == "/*" else match.end()
        kind = str(match.lastgroup)
        if kind not in ("space", "comment"):
            yield kind, match[0]


def _comment_end(text: str, at: int) -> int:
    """Where the comment that opens at `at` ends; as in Spark, comments nest."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, at):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    raise BadQuery("the query has an unterminated comment")


def _check_token(kind: str, token: str, depth: int, limits: SqlLimits) -> None:
    if depth > limits.depth_max:
        raise LimitReached(f"the query is nested more than {limits.depth_max} levels deep")
    if kind == "string" and len(token) > limits.string_max:
        raise LimitReached(
            f"a string literal in the query is longer than {limits.string_max:,} characters"
        )
    if kind == "other" and token in "'\"`":
        raise BadQuery("the query has an unterminated quote")
