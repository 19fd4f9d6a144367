"""Parses the query after AS in a stream, view or rule: a SELECT, the call of a processor, a SELECT
over a pattern, or a threshold.

A SELECT is kept as written. tests/define/test_statements.py, test_match_recognize.py and
test_thresholds.py check what is read and what is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot.tokenizer_core import Token

from headrace.core.errors import Unsupported
from headrace.core.origin import Origin
from headrace.define.definitions import MATCHED, ProcessorCall, QueryDefinition
from headrace.define.dialect import tokens_of
from headrace.define.match_recognize import read_match
from headrace.define.thresholds import read_threshold
from headrace.define.tokens import TokenCursor, statements, word_of


def query_of(kind: str, name: str, text: str, origin: Origin, place: Origin) -> QueryDefinition:
    """The query of a definition whose other clauses are parsed elsewhere."""
    # At its own line of the file, so that an error names it.
    whole = "\n" * (place.line - 1) + f"AS {text}"
    [tokens] = statements(whole, place.path)
    return read_query(TokenCursor(whole, place.path, tokens), kind, name, origin)


def read_query(tokens: TokenCursor, kind: str, name: str, origin: Origin) -> QueryDefinition:
    """The rest of the statement, from AS."""
    tokens.expect("AS")
    if tokens.done:
        raise tokens.error(f"{kind} '{name}' has no SELECT after AS")
    if kind == "stream" and _calls_processor(tokens):
        return _processed(tokens, name, origin)
    if kind == "stream" and tokens.starts_with("COUNT"):
        return _counted(tokens, name, origin)
    if (at := _pattern_at(tokens.tokens)) is not None:
        return _matched(tokens, kind, name, origin, at)
    return QueryDefinition(name, kind, _rest(tokens), origin, tokens.origin)


def has_pattern(text: str) -> bool:
    """Whether a query has a pattern, and not only its name in quotes.

    >>> has_pattern("SELECT * FROM s MATCH_RECOGNIZE (ORDER BY ts PATTERN (a))")
    True
    >>> has_pattern("SELECT * FROM s WHERE word = 'match_recognize'")
    False
    """
    return _pattern_at(tokens_of(text, Origin("query", 1))) is not None


def _pattern_at(tokens: Sequence[Token]) -> int | None:
    return next((n for n, t in enumerate(tokens) if word_of(t) == "MATCH_RECOGNIZE"), None)


def _rest(tokens: TokenCursor) -> str:
    return tokens.text[tokens.tokens[tokens.at].start : tokens.tokens[-1].end + 1]


def _calls_processor(tokens: TokenCursor) -> bool:
    named = [tokens.peek(number) for number in (4, 5)]
    return tokens.starts_with("SELECT * FROM") and named == ["(", "TABLE"]


def _processed(tokens: TokenCursor, name: str, origin: Origin) -> QueryDefinition:
    """SELECT * FROM processor(TABLE(stream) PARTITION BY key, …)"""
    place = tokens.origin
    tokens.at += 3
    processor = tokens.name("the processor")
    for word in ("(", "TABLE", "("):
        tokens.expect(word)
    source = tokens.name("the stream")
    tokens.expect(")")
    tokens.expect("PARTITION BY")
    call = ProcessorCall(processor, tokens.names("a column"))
    tokens.expect(")")
    tokens.end()
    return QueryDefinition(name, "stream", f"SELECT * FROM {source}", origin, place, call)


def _matched(tokens: TokenCursor, kind: str, name: str, origin: Origin, at: int) -> QueryDefinition:
    """SELECT … FROM stream MATCH_RECOGNIZE ( … ) …"""
    place, start = tokens.origin, tokens.tokens[tokens.at].start
    first = _relation(tokens, at)
    source = tokens.text[first.start : tokens.tokens[at - 1].end + 1]
    if kind != "query" and not source.isidentifier():
        raise tokens.error("MATCH_RECOGNIZE must follow FROM and the name of a stream", place)
    if kind == "view":
        raise Unsupported(
            f"MATCH_RECOGNIZE is not allowed in view '{name}'",
            hint="create a stream of the matches with CREATE STREAM … AS SELECT … FROM "
            f"{source} MATCH_RECOGNIZE (…), and read that stream in the view.",
            origin=place,
        )
    tokens.at = at + 1
    match = read_match(tokens)
    end = tokens.tokens[tokens.at - 1].end + 1
    # The lines of the clause stay, so that an error after it names the right line.
    lines = "\n" * tokens.text[first.start : end].count("\n")
    after = tokens.text[end : tokens.tokens[-1].end + 1]
    select = f"{tokens.text[start : first.start]}{MATCHED}{lines} {after}"
    query = f"SELECT * FROM {source}"
    return QueryDefinition(
        name, "stream", query, origin, place, match=replace(match, select=select)
    )


def _relation(tokens: TokenCursor, at: int) -> Token:
    """The first word of what stands between FROM and the word at that place."""
    depth, words = 0, tokens.tokens
    for before in range(at - 1, 0, -1):
        depth += (word_of(words[before]) == ")") - (word_of(words[before]) == "(")
        if depth == 0 and word_of(words[before - 1]) == "FROM":
            return words[before]
    raise tokens.error("MATCH_RECOGNIZE must follow FROM and the name of a stream")


def _counted(tokens: TokenCursor, name: str, origin: Origin) -> QueryDefinition:
    """count(…) >= n WITHIN INTERVAL … PER keys FROM stream WHERE …"""
    place, threshold = tokens.origin, read_threshold(tokens)
    query = f"SELECT * {_rest(tokens)}"
    return QueryDefinition(name, "stream", query, origin, place, threshold=threshold)
