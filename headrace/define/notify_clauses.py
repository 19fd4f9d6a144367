"""Parses what rules and watches have in common: the SELECT, and the clauses after it.

The SELECT ends where a clause begins: at a clause's word outside of parentheses, after FROM, that
no word or sign of a SELECT follows, so that a column may be called `severity` too. Each clause
stands at most once, in any order. tests/define/test_create_rule.py and
tests/define/test_create_watch.py read each refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import TokenType

from headrace.core.origin import Origin
from headrace.core.rule import Severity
from headrace.define.tokens import TokenCursor
from headrace.destination.kinds import Destination, parse_notify

# WHEN between CASE and END is no clause.
_OPENS, _CLOSES = {TokenType.L_PAREN, TokenType.CASE}, {TokenType.R_PAREN, TokenType.END}
# What may follow a column in a SELECT.
_GOES_ON = {
    "IN", "IS", "LIKE", "RLIKE", "ILIKE", "REGEXP", "BETWEEN", "AND", "OR", "NOT", "DIV", "COLLATE",
    "ESCAPE", "AS", "ASC", "DESC", "NULLS", "THEN", "ELSE", "END", "WHERE", "GROUP", "HAVING",
    "ORDER", "LIMIT", "OFFSET", "UNION", "EXCEPT", "INTERSECT", "JOIN", "INNER", "LEFT", "RIGHT",
    "FULL", "CROSS", "NATURAL", "LATERAL", "ON", "USING",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SelectStatement:
    """The whole statement, and its SELECT with its origin."""

    text: str
    query: str
    origin: Origin


def read_select_statement(
    tokens: TokenCursor, what: str, clauses: NotifyClauses
) -> SelectStatement:
    """Parse AS, a SELECT and the clauses after it, which are stored in `clauses`."""
    first = tokens.tokens[0]
    tokens.expect("AS")
    origin, query = tokens.origin, _read_select(tokens, what, tuple(clauses.readers))
    clauses.read()
    return SelectStatement(tokens.text[first.start : tokens.tokens[-1].end + 1], query, origin)


def _read_select(tokens: TokenCursor, what: str, clauses: Sequence[str]) -> str:
    """The text up to the first clause."""
    if not tokens.starts_with("SELECT") and not tokens.starts_with("COUNT"):
        raise tokens.error(f"{what} has no SELECT after AS")
    first, depth, sourced = tokens.at, 0, False
    while not tokens.done and not (sourced and depth == 0 and _begins(tokens, clauses)):
        kind = tokens.kind()
        depth += (kind in _OPENS) - (kind in _CLOSES)
        sourced = sourced or kind is TokenType.FROM
        tokens.at += 1
    return tokens.text_from(first)


def _begins(tokens: TokenCursor, clauses: Sequence[str]) -> bool:
    if not any(map(tokens.starts_with, clauses)) or tokens.kind(-1) is TokenType.DOT:
        return False
    opens = {"AFTER": TokenType.NUMBER, "WHEN": TokenType.L_PAREN}.get(tokens.peek())
    after = tokens.peek(1)
    return tokens.kind(1) in {None, TokenType.STRING, opens} or (
        after.isidentifier() and after not in _GOES_ON
    )


class NotifyClauses:
    """SEVERITY and NOTIFY; subclasses add more clauses to `readers`."""

    def __init__(self, tokens: TokenCursor) -> None:
        self.tokens = tokens
        self.severity = Severity.MEDIUM
        self.destinations: tuple[Destination, ...] = ()
        self.readers: dict[str, Callable[[], None]] = {
            "SEVERITY": self._severity,
            "NOTIFY": self._notify,
        }

    def read(self) -> None:
        said: set[str] = set()
        while not self.tokens.done:
            word = next((word for word in self.readers if self.tokens.starts_with(word)), None)
            if word is None:
                self.tokens.end()
            elif word in said:
                raise self.tokens.error(f"{word} is given twice")
            else:
                said.add(word)
                self.tokens.expect(word)
                self.readers[word]()

    def _severity(self) -> None:
        origin, word = self.tokens.origin, self.tokens.literal().lower()
        if word not in set(Severity):
            known = ", ".join(f"'{each}'" for each in Severity)
            raise self.tokens.error(f"severity must be one of {known}, not '{word}'", origin)
        self.severity = Severity(word)

    def _notify(self) -> None:
        found = self.tokens.listed(lambda: parse_notify(self.tokens))
        for number, one in enumerate(found):
            if one in found[:number]:
                raise self.tokens.error(f"{one.kind} '{one.target}' is notified twice")
        self.destinations = found
