"""Reads the pattern of MATCH_RECOGNIZE: alternatives of sequences of quantified parts.

tests/define/test_match_recognize.py checks what is read and what is refused.
"""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from headrace.core.errors import Unsupported
from headrace.core.pattern import (
    Absent,
    Choice,
    End,
    Exclude,
    Node,
    Permute,
    Repeat,
    Sequence,
    Start,
    Variable,
)
from headrace.define.tokens import TokenCursor

TIMES_MAX = 10_000
_ENDS = (")", "|", "||", "-", ",")


class PatternReader:
    """`( … )` after PATTERN: alternatives of sequences of quantified parts."""

    def __init__(self, tokens: TokenCursor) -> None:
        self.tokens = tokens

    def read(self) -> Node:
        self.tokens.expect("(")
        node = self.choice()
        self.tokens.expect(")")
        return node

    def choice(self) -> Node:
        parts = [self.sequence()]
        while self.tokens.accept("|"):
            parts.append(self.sequence())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def sequence(self) -> Node:
        parts: list[Node] = []
        while not self.tokens.done and self.tokens.peek() not in _ENDS:
            parts.append(self.quantified(self.part()))
        if not parts:
            raise self.tokens.error("expected a pattern element; write () for the empty pattern")
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def part(self) -> Node:
        tokens = self.tokens
        if tokens.accept("^"):
            return Start()
        if tokens.accept("$"):
            return End()
        if tokens.accept("( )"):
            return Sequence(())
        if tokens.starts_with("("):
            return self.read()
        if tokens.accept("{"):
            tokens.expect("-")
            node = self.choice()
            tokens.expect("-")
            tokens.expect("}")
            return Exclude(node)
        if tokens.accept("NOT"):
            return Absent(tokens.name("a variable").upper())
        if tokens.accept("PERMUTE ("):
            parts = tokens.listed(self.choice)
            tokens.expect(")")
            return Permute(parts)
        return Variable(tokens.name("a variable").upper())

    def quantified(self, part: Node) -> Node:
        """The part with its quantifier, if it has one."""
        tokens, origin = self.tokens, self.tokens.origin
        bounds = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if tokens.accept("??"):
            return Repeat(part, 0, 1, greedy=False)
        sign = next((sign for sign in bounds if tokens.accept(sign)), None)
        if sign is None and not self.braces():
            return part
        least, most = bounds[sign] if sign else self.counts()
        if isinstance(part, Absent | Start | End):
            raise Unsupported("a quantifier is not allowed after NOT, ^ or $", origin=origin)
        if most is not None and (most < least or most == 0):
            at_least = max(least, 1)
            raise tokens.error(
                f"the upper bound of {{{least},{most}}} must be at least {at_least}", origin
            )
        return Repeat(part, least, most, greedy=not tokens.accept("?"))

    def braces(self) -> bool:
        """Whether a number of times comes next, and not an exclusion."""
        return self.tokens.starts_with("{") and not self.tokens.starts_with("{ -")

    def counts(self) -> tuple[int, int | None]:
        self.tokens.expect("{")
        least = self.number()
        if not self.tokens.accept(","):
            self.tokens.expect("}")
            if least is None:
                raise self.tokens.error("expected a number of repetitions between { and }")
            return least, least
        most = self.number()
        self.tokens.expect("}")
        return least or 0, most

    def number(self) -> int | None:
        tokens = self.tokens
        if tokens.kind() is not TokenType.NUMBER:
            return None
        origin, text = tokens.origin, tokens.word()
        if not text.isdecimal() or int(text) > TIMES_MAX:
            raise tokens.error(
                f"a number of repetitions must be a whole number up to {TIMES_MAX}, not {text}",
                origin,
            )
        return int(text)
