"""Turns errors of the parser into sentences about the user's text.

The parser reports where it stopped in its own terms. Here that becomes the unexpected word and the
likely mistake: a quote that is never closed, a ';' that is missing, a word that is misspelt.
tests/define/test_dialect.py reads each sentence.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from typing import Any

from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from headrace.core.errors import BadDefinition
from headrace.core.origin import Origin

SEMICOLON = "is a ';' missing before CREATE?"
_OPENED = re.compile(r"Missing .+ from \d+:(\d+)")
Tokenize = Callable[[str], Iterable[Token]]
_CLAUSES = ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "JOIN", "LATERAL")


def unclosed_quote(
    text: str, error: TokenError, tokenize: Tokenize, origin: Origin
) -> BadDefinition:
    """A quote or a comment of `text`, which begins at `origin`, is opened and never closed."""
    at = _opened(text, error)
    try:
        before = list(tokenize(text[:at]))
    except TokenError:
        place = _place(text, text.rfind("/*"), origin)
        return BadDefinition("the comment that starts here is never closed", origin=place)
    # Where a quote is forgotten, the next one closes the text: it is the first that spans lines.
    wide = [t for t in before if t.token_type is TokenType.STRING and "\n" in t.text]
    if not wide:
        place = _place(text, at, origin)
        return BadDefinition("the string that starts here is never closed", origin=place)
    return BadDefinition(
        "the string that starts here continues on the next line, and a later one is never closed",
        hint="is a quote missing at the end of this string?",
        origin=_place(text, wide[0].start, origin),
    )


def _opened(text: str, error: TokenError) -> int:
    """The position of the quote that is not closed; the parser does not report it for the last
    character.
    """
    said = _OPENED.search(str(error.__cause__))
    return int(said[1]) if said else len(text.rstrip()) - 1


def _place(text: str, at: int, origin: Origin) -> Origin:
    return origin.below(text.count("\n", 0, at) + 1)


def syntax_error(error: ParseError, first: str, origin: Origin) -> BadDefinition:
    """A SELECT that cannot be read; `first` is its first word."""
    if first.upper() not in {"SELECT", "WITH", "FROM", "("}:
        return select_expected(first, origin)
    where: dict[str, Any] = error.errors[0] if error.errors else {}
    word = str(where.get("highlight") or "")
    place = origin.below(int(where.get("line") or 1), int(where.get("col") or 0))
    said = _said(str(where.get("description") or ""), word)
    return BadDefinition(said, hint=_slip(str(where.get("start_context")), word), origin=place)


def select_expected(first: str, origin: Origin) -> BadDefinition:
    """The error for a text that is not a SELECT."""
    meant = difflib.get_close_matches(first.upper(), ["SELECT"], 1)
    return BadDefinition(
        f"expected a SELECT, got '{first}'",
        hint="did you mean SELECT?" if meant else "write … AS SELECT … FROM …",
        origin=origin,
    )


def _said(description: str, word: str) -> str:
    if description.startswith("Required keyword"):
        return f"something is missing at '{word}'"
    if description.startswith("Expecting"):
        return f"{description.rstrip('.').lower()} near '{word}'"
    return f"unexpected '{word}'" if word else "the statement is not valid"


def _slip(before: str, word: str) -> str | None:
    """The likely mistake: the word itself, or the one before it, which was taken for a name."""
    if word.upper() == "CREATE":
        return SEMICOLON
    for near in (word, *before.split()[-1:]):
        meant = difflib.get_close_matches(near.upper(), _CLAUSES, 1, cutoff=0.7)
        if meant and near.upper() != meant[0]:
            return f"did you mean {meant[0]} instead of '{near}'?"
    return None
