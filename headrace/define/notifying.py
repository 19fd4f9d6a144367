"""Reads what rules and watches share: the SELECT, and the clauses after it.

The SELECT ends where a clause begins: at a clause's word outside of parentheses, after FROM, that
no word or sign of a SELECT follows, so that a column may be called `severity` too. Each clause
stands at most once, in any order. tests/define/test_ruling.py and tests/define/test_watching.py
read each refusal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from sqlglot.tokenizer_core import TokenType

from headrace.core.origin import Origin
from headrace.core.rule import Kind, Severity
from headrace.define.definitions import ActionDefinition
from headrace.define.tokens import Tokens

_ADDRESS = re.compile(r"[^@\s<>,;]+@[^@\s<>,;]+\.[^@\s<>,;]+")
_ACTIONS = "a URL in quotes, STREAM name, FILE 'path', EMAIL 'address' or CALL function"
# WHEN between CASE and END is no clause.
_OPENS, _CLOSES = {TokenType.L_PAREN, TokenType.CASE}, {TokenType.R_PAREN, TokenType.END}
# What may follow a column in a SELECT.
_GOES_ON = {
    "IN", "IS", "LIKE", "RLIKE", "ILIKE", "REGEXP", "BETWEEN", "AND", "OR", "NOT", "DIV", "COLLATE",
    "ESCAPE", "AS", "ASC", "DESC", "NULLS", "THEN", "ELSE", "END", "WHERE", "GROUP", "HAVING",
    "ORDER", "LIMIT", "OFFSET", "UNION", "EXCEPT", "INTERSECT", "JOIN", "INNER", "LEFT", "RIGHT",
    "FULL", "CROSS", "NATURAL", "LATERAL", "ON", "USING",
}  # fmt: skip
URL_MAX = 2_000


@dataclass(frozen=True, slots=True)
class Said:
    """The whole statement, and its SELECT with its place."""

    text: str
    query: str
    origin: Origin


def read_said(tokens: Tokens, what: str, clauses: Clauses) -> Said:
    """What stands after the name: AS, a SELECT and clauses, which are left in `clauses`."""
    first = tokens.tokens[0]
    tokens.expect("AS")
    origin, query = tokens.origin, _read_select(tokens, what, tuple(clauses.readers))
    clauses.read()
    return Said(tokens.text[first.start : tokens.tokens[-1].end + 1], query, origin)


def _read_select(tokens: Tokens, what: str, clauses: Sequence[str]) -> str:
    """The text up to the first clause."""
    if not tokens.seen("SELECT") and not tokens.seen("COUNT"):
        raise tokens.wrong(f"{what} has no SELECT after AS")
    first, depth, sourced = tokens.at, 0, False
    while not tokens.done and not (sourced and depth == 0 and _begins(tokens, clauses)):
        kind = tokens.kind()
        depth += (kind in _OPENS) - (kind in _CLOSES)
        sourced = sourced or kind is TokenType.FROM
        tokens.at += 1
    return tokens.text_from(first)


def _begins(tokens: Tokens, clauses: Sequence[str]) -> bool:
    if not any(map(tokens.seen, clauses)) or tokens.kind(-1) is TokenType.DOT:
        return False
    opens = {"AFTER": TokenType.NUMBER, "WHEN": TokenType.L_PAREN}.get(tokens.ahead())
    after = tokens.ahead(1)
    return tokens.kind(1) in {None, TokenType.STRING, opens} or (
        after.isidentifier() and after not in _GOES_ON
    )


class Clauses:
    """Who is told, and how much it matters; others have more clauses in `readers`."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.severity = Severity.MEDIUM
        self.actions: tuple[ActionDefinition, ...] = ()
        self.readers: dict[str, Callable[[], None]] = {
            "SEVERITY": self._severity,
            "NOTIFY": self._notify,
        }

    def read(self) -> None:
        said: set[str] = set()
        while not self.tokens.done:
            word = next((word for word in self.readers if self.tokens.seen(word)), None)
            if word is None:
                self.tokens.end()
            elif word in said:
                raise self.tokens.wrong(f"{word} is said twice")
            else:
                said.add(word)
                self.tokens.expect(word)
                self.readers[word]()

    def _severity(self) -> None:
        origin, word = self.tokens.origin, self.tokens.literal().lower()
        if word not in set(Severity):
            known = ", ".join(f"'{each}'" for each in Severity)
            raise self.tokens.wrong(f"severity is one of {known}, not '{word}'", origin)
        self.severity = Severity(word)

    def _notify(self) -> None:
        found = [self._action()]
        while self.tokens.took(","):
            found.append(self._action())
        for number, action in enumerate(found):
            if action in found[:number]:
                raise self.tokens.wrong(f"{action.kind} '{action.target}' is notified twice")
        self.actions = tuple(found)

    def _action(self) -> ActionDefinition:
        tokens, origin = self.tokens, self.tokens.origin
        if tokens.kind() is TokenType.STRING:
            return ActionDefinition(Kind.WEBHOOK, self._url(origin))
        if tokens.took("STREAM"):
            return ActionDefinition(Kind.STREAM, tokens.name("the stream"))
        if tokens.took("FILE"):
            return ActionDefinition(Kind.FILE, tokens.literal())
        if tokens.took("EMAIL"):
            return ActionDefinition(Kind.EMAIL, self._address(origin))
        if tokens.took("CALL"):
            return ActionDefinition(Kind.CALL, tokens.name("the function"))
        raise tokens.wrong(f"NOTIFY takes {_ACTIONS}", origin)

    def _url(self, origin: Origin) -> str:
        url = self.tokens.literal()
        try:
            parts = urlsplit(url)
            known = parts.scheme in {"http", "https"} and parts.hostname and (parts.port or 1)
        except ValueError:
            known = False
        if not known or len(url) > URL_MAX or not url.isprintable() or " " in url:
            raise self.tokens.wrong(
                f"'{url[:100]}' is not a URL such as 'https://host/path'", origin
            )
        if parts.username is not None or parts.fragment:
            raise self.tokens.wrong("a URL to notify has no user, password or fragment", origin)
        return url

    def _address(self, origin: Origin) -> str:
        address = self.tokens.literal()
        if not _ADDRESS.fullmatch(address):
            raise self.tokens.wrong(f"'{address}' is not an address such as 'ops@host.org'", origin)
        return address
