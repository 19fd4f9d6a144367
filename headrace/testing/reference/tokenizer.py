"""Tokens of a text: words, numbers, quoted text and signs, each with its position.

Comments and spaces are between tokens and belong to none; nothing inside quotes is a token of its
own. So a clause can be found by its words, and what is between two tokens is a slice of the text.
tests/testing/test_tokenizer.py checks it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headrace.core.errors import BadDefinition

_PIECE = re.compile(
    r"(?P<space>\s+|--[^\n]*|/\*.*?\*/)"
    r"|(?P<quoted>'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`)"
    r"|(?P<word>\w+)|(?P<sign>.)",
    re.S,
)


@dataclass(frozen=True, slots=True)
class TextToken:
    """`text` at `[start, end)`; `word` is the text in upper case if it is a word, else empty."""

    text: str
    start: int
    end: int
    word: str = ""


def text_tokens(text: str) -> list[TextToken]:
    """
    >>> [piece.text for piece in text_tokens("a 'b c' -- d")]
    ['a', "'b c'"]
    """
    found = [match for match in _PIECE.finditer(text) if not match["space"]]
    return [TextToken(m[0], m.start(), m.end(), (m["word"] or "").upper()) for m in found]


def plain(text: str) -> str:
    """The same text without comments: each is a space, and so is a line's end.

    >>> plain("a/* b */c")
    'a c'
    """
    return _PIECE.sub(lambda match: " " if match["space"] else match[0], text)


def closing(pieces: Sequence[TextToken], opening: int) -> int:
    """Which piece closes the parenthesis that is piece number `opening`."""
    depth = 0
    for number in range(opening, len(pieces)):
        depth += (pieces[number].text == "(") - (pieces[number].text == ")")
        if depth == 0:
            return number
    raise BadDefinition("a parenthesis is not closed")


def listed(text: str) -> Iterator[str]:
    """The parts of a list: what is between commas that stand outside parentheses.

    >>> list(listed("f(a, b) AS x, y"))
    ['f(a, b) AS x', 'y']
    """
    depth, begin = 0, 0
    for piece in text_tokens(text):
        depth += (piece.text == "(") - (piece.text == ")")
        if piece.text == "," and depth == 0:
            yield text[begin : piece.start].strip()
            begin = piece.end
    yield text[begin:].strip()


def name_in(text: str) -> str:
    """The name that a text is, without its quotes.

    >>> name_in(" `user` ")
    'user'
    """
    name = text.strip().strip("`")
    if not re.fullmatch(r"\w+", name):
        raise BadDefinition(f"'{text.strip()}' is not a name")
    return name
