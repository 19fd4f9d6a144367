"""Reads `CREATE RULE name AS SELECT …` and the clauses after the SELECT.

`compile` checks whether the rule is supported. tests/define/test_create_rule.py checks what is read
and reads each refusal.
"""

from __future__ import annotations

from headrace.core.origin import Origin
from headrace.core.rule import Coupling
from headrace.define.definitions import RuleDefinition
from headrace.define.notify_clauses import NotifyClauses, read_select_statement
from headrace.define.tokens import TokenCursor


def read_rule(tokens: TokenCursor, name: str, origin: Origin) -> RuleDefinition:
    """The rule whose name has been read."""
    clauses = _RuleClauses(tokens)
    said = read_select_statement(tokens, f"rule '{name}'", clauses)
    statement = name, said.text, said.query, origin, said.origin
    return RuleDefinition(
        *statement, clauses.severity, clauses.destinations, clauses.suppress_us, clauses.per,
        clauses.coupling, clauses.corrections,
    )  # fmt: skip


class _RuleClauses(NotifyClauses):
    def __init__(self, tokens: TokenCursor) -> None:
        super().__init__(tokens)
        self.suppress_us: int | None = None
        self.per: tuple[str, ...] = ()
        self.coupling = Coupling.IMMEDIATE
        self.corrections = False
        self.readers |= {
            "SUPPRESS": self._suppress,
            "COUPLING": self._coupling,
            "WITH": self._corrections,
        }

    def _suppress(self) -> None:
        self.tokens.expect("FOR")
        self.tokens.expect("INTERVAL")
        origin, self.suppress_us = self.tokens.origin, self.tokens.interval()
        if self.suppress_us <= 0:
            raise self.tokens.error("the interval must be greater than zero", origin)
        if self.tokens.accept("PER"):
            self.per = self.tokens.listed(lambda: self.tokens.name("a column"))

    def _coupling(self) -> None:
        origin, word = self.tokens.origin, self.tokens.word().lower()
        if word not in set(Coupling):
            raise self.tokens.error(
                f"COUPLING must be IMMEDIATE or EPOCH, not {word.upper()}", origin
            )
        self.coupling = Coupling(word)

    def _corrections(self) -> None:
        self.tokens.expect("CORRECTIONS")
        self.corrections = True
