"""Reads `CREATE WATCH name AS SELECT …` and the clauses after the SELECT.

A watch is a rule with an end: UNTIL a timestamp, AFTER a number of matches, WHEN a condition over
the matched row; whichever comes first. At least one of them is required.
tests/define/test_create_watch.py checks what is read and reads each refusal.
"""

from __future__ import annotations

from headrace.core.origin import Origin
from headrace.core.time import from_iso
from headrace.define.definitions import NamedExpression, WatchDefinition
from headrace.define.notify_clauses import NotifyClauses, read_select_statement
from headrace.define.tokens import TokenCursor

MATCHES_MAX = 1_000_000_000


def read_watch(tokens: TokenCursor, name: str, origin: Origin) -> WatchDefinition:
    """The watch whose name has been read."""
    clauses = _WatchClauses(tokens)
    said = read_select_statement(tokens, f"watch '{name}'", clauses)
    if not clauses.ends:
        raise tokens.error(
            f"watch '{name}' has no end: add UNTIL 'a date', AFTER n MATCHES or WHEN (condition)",
            origin,
        )
    statement = name, said.text, said.query, origin, said.origin
    return WatchDefinition(
        *statement, clauses.severity, clauses.destinations, clauses.until_us, clauses.matches_max,
        clauses.when,
    )  # fmt: skip


class _WatchClauses(NotifyClauses):
    def __init__(self, tokens: TokenCursor) -> None:
        super().__init__(tokens)
        self.until_us: int | None = None
        self.matches_max: int | None = None
        self.when: NamedExpression | None = None
        self.readers |= {"UNTIL": self._until, "AFTER": self._after, "WHEN": self._when}

    @property
    def ends(self) -> bool:
        return any(end is not None for end in (self.until_us, self.matches_max, self.when))

    def _until(self) -> None:
        origin, text = self.tokens.origin, self.tokens.literal()
        try:
            self.until_us = from_iso(text if "T" in text or " " in text else f"{text}T00:00:00Z")
        except ValueError as error:
            raise self.tokens.error(
                f"'{text[:40]}' is not a date or timestamp such as '2027-01-15'", origin
            ) from error

    def _after(self) -> None:
        origin, word = self.tokens.origin, self.tokens.word()
        if not word.isdecimal() or not 1 <= int(word) <= MATCHES_MAX:
            raise self.tokens.error(
                f"AFTER requires a number of matches from 1 to {MATCHES_MAX}, got {word}", origin
            )
        self.matches_max = int(word)
        if not self.tokens.accept("MATCH"):
            self.tokens.expect("MATCHES")

    def _when(self) -> None:
        tokens, origin = self.tokens, self.tokens.origin
        tokens.expect("(")
        first, depth = tokens.at, 0
        while not tokens.done and (depth or not tokens.starts_with(")")):
            depth += tokens.starts_with("(") - tokens.starts_with(")")
            tokens.at += 1
        if tokens.done or tokens.at == first:
            raise tokens.error("WHEN requires a condition in parentheses", origin)
        self.when = NamedExpression("when", tokens.text_from(first), origin)
        tokens.expect(")")
