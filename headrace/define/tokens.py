"""A cursor over the tokens of one statement; each error has its line.

A clause begins at a word, and a text or a name in quotes is never a word, whatever it says: every
reader compares words here, with their kind, and none the bare text of a token. `CREATE …` and
`SUBSCRIBE …` are both read with it. tests/define/test_statements.py checks the sentences,
tests/define/test_keywords.py puts every keyword into every literal, quoted name and comment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from sqlglot.tokenizer_core import Token, TokenType

from headrace.core.errors import BadDefinition
from headrace.core.origin import Origin
from headrace.core.time import duration_us
from headrace.define.dialect import tokens_of
from headrace.define.syntax_errors import SEMICOLON

_TEXTS = {
    TokenType.STRING, TokenType.RAW_STRING, TokenType.NATIONAL_STRING, TokenType.HEX_STRING,
    TokenType.BIT_STRING, TokenType.BYTE_STRING, TokenType.UNICODE_STRING,
    TokenType.HEREDOC_STRING, TokenType.NATIONAL_RAW_STRING,
}  # fmt: skip
_QUOTED = {*_TEXTS, TokenType.IDENTIFIER}
T = TypeVar("T")


def word_of(token: Token) -> str:
    """The word or sign of a token in upper case; empty for a quoted one."""
    return "" if token.token_type in _QUOTED else token.text.upper()


def words_in(text: str) -> frozenset[str]:
    """The words and names of a text in lower case, without what stands in quotes as a value.

    >>> sorted(words_in("SELECT `_raw`:a FROM s -- '_offset'"))
    [':', '_raw', 'a', 'from', 's', 'select']
    """
    tokens = tokens_of(text, Origin("text", 1))
    return frozenset(token.text.lower() for token in tokens if token.token_type not in _TEXTS)


def statements(text: str, path: str) -> Iterator[list[Token]]:
    """The tokens of each statement of a text."""
    statement: list[Token] = []
    for token in tokens_of(text, Origin(path, 1)):
        if token.token_type is not TokenType.SEMICOLON:
            statement.append(token)
        elif statement:
            yield statement
            statement = []
    if statement:
        yield statement


@dataclass(slots=True)
class TokenCursor:
    """A cursor over the tokens of one statement."""

    text: str
    path: str
    tokens: list[Token]
    at: int = 0

    @property
    def done(self) -> bool:
        return self.at >= len(self.tokens)

    @property
    def origin(self) -> Origin:
        token = self.tokens[min(self.at, len(self.tokens) - 1)]
        before = self.text[: token.start]
        return Origin(self.path, before.count("\n") + 1)

    def peek(self, number: int = 0) -> str:
        """The word or sign that comes, or one further on; empty if there is none."""
        at = self.at + number
        return word_of(self.tokens[at]) if 0 <= at < len(self.tokens) else ""

    def kind(self, number: int = 0) -> TokenType | None:
        at = self.at + number
        return self.tokens[at].token_type if 0 <= at < len(self.tokens) else None

    def starts_with(self, words: str) -> bool:
        return self._spelt(words) > 0

    def accept(self, words: str) -> bool:
        found = self._spelt(words)
        self.at += found
        return found > 0

    def _spelt(self, words: str) -> int:
        """How many tokens spell these words here; 0 if they do not. `ORDER BY` is one or two."""
        wanted, found, count = words.split(), list[str](), 0
        while len(found) < len(wanted) and (word := self.peek(count)):
            found += word.split()
            count += 1
        return count if found == wanted else 0

    def word(self) -> str:
        if self.done:
            raise self.error("unexpected end of the statement")
        self.at += 1
        return self.tokens[self.at - 1].text

    def name(self, what: str) -> str:
        token = self.tokens[self.at] if not self.done else None
        if token is None or token.token_type in _TEXTS or not token.text.isidentifier():
            raise self.error(f"expected a name for {what}: letters, digits and '_'")
        return self.word()

    def listed(self, read: Callable[[], T]) -> tuple[T, ...]:
        """One or more items with commas between them."""
        found = [read()]
        while self.accept(","):
            found.append(read())
        return tuple(found)

    def names(self, what: str) -> tuple[str, ...]:
        """A list of names, in parentheses or not."""
        together = self.accept("(")
        found = self.listed(lambda: self.name(what))
        if together:
            self.expect(")")
        return found

    def literal(self) -> str:
        if self.kind() is not TokenType.STRING:
            raise self.error("expected a quoted string")
        return self.word()

    def interval(self) -> int:
        """`1 SECOND`, `'1 second'` or `1 HOUR 30 MINUTES`, after the word INTERVAL."""
        origin, words = self.origin, [self.word()]
        if words[0].replace(".", "").isdecimal():
            words.append(self.word())
        while self.kind() is TokenType.NUMBER:
            words += [self.word(), self.word()]
        try:
            return duration_us(" ".join(words))
        except ValueError as error:
            raise self.error(f"the interval is not valid: {error}", origin) from error

    def text_from(self, first: int) -> str:
        """The source text from a token up to here."""
        start, end = self.tokens[first].start, self.tokens[self.at - 1].end
        return self.text[start : end + 1]

    def expect(self, word: str) -> None:
        if not self.accept(word):
            found = "the end of the statement" if self.done else f"'{self.tokens[self.at].text}'"
            raise self.error(f"expected {word}, got {found}")

    def end(self) -> None:
        if not self.done:
            raise self.error(
                f"expected the end of the statement, got '{self.tokens[self.at].text}'"
            )

    def error(self, message: str, origin: Origin | None = None) -> BadDefinition:
        hint = SEMICOLON if self.at and self.starts_with("CREATE") else None
        return BadDefinition(message, hint=hint, origin=origin or self.origin)
