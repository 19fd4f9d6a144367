"""Walks the tokens of one statement; each mistake is named with its line.

`CREATE …` and `SUBSCRIBE …` are both read with it. tests/define/test_statements.py checks the
sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from headrace.core.errors import BadDefinition
from headrace.core.origin import Origin
from headrace.core.time import duration_us
from headrace.define.dialect import tokens_of
from headrace.define.mistakes import SEMICOLON


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
class Tokens:
    """A place in the tokens of one statement."""

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

    def seen(self, word: str) -> bool:
        return not self.done and self.tokens[self.at].text.upper() == word

    def took(self, word: str) -> bool:
        found = self.seen(word)
        self.at += found
        return found

    def word(self) -> str:
        if self.done:
            raise self.wrong("the statement ends too early")
        self.at += 1
        return self.tokens[self.at - 1].text

    def name(self, what: str) -> str:
        token = self.tokens[self.at] if not self.done else None
        if token is None or not token.text.isidentifier():
            raise self.wrong(f"a name for {what} is expected: letters, digits and '_'")
        return self.word()

    def literal(self) -> str:
        if self.done or self.tokens[self.at].token_type is not TokenType.STRING:
            raise self.wrong("a text in quotes is expected")
        return self.word()

    def interval(self) -> int:
        """`1 SECOND`, `'1 second'` or `1 HOUR 30 MINUTES`, after the word INTERVAL."""
        origin, words = self.origin, [self.word()]
        if words[0].replace(".", "").isdecimal():
            words.append(self.word())
        while not self.done and self.tokens[self.at].token_type is TokenType.NUMBER:
            words += [self.word(), self.word()]
        try:
            return duration_us(" ".join(words))
        except ValueError as error:
            raise self.wrong(f"the interval is wrong: {error}", origin) from error

    def expect(self, word: str) -> None:
        if not self.took(word):
            found = (
                "the statement ends" if self.done else f"'{self.tokens[self.at].text}' stands there"
            )
            raise self.wrong(f"{word} is expected, but {found}")

    def end(self) -> None:
        if not self.done:
            raise self.wrong(
                f"nothing more is expected, but '{self.tokens[self.at].text}' stands there"
            )

    def wrong(self, message: str, origin: Origin | None = None) -> BadDefinition:
        hint = SEMICOLON if self.at and self.seen("CREATE") else None
        return BadDefinition(message, hint=hint, origin=origin or self.origin)
