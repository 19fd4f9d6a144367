"""Reads `CREATE RULES name` after the name: a stream with its lookups, then rules.

    ON stream [alias] [joins] [FIRST MATCH | ALL MATCHES [AS column]]
    RULE name WHEN condition THEN SET field = value, … [RULE …] [ELSE SET …]   or   FROM 'table.csv'

Only the syntax is checked here; `compile` checks names and types.
tests/define/test_decision_rules.py checks what is read, tests/plans/error_rules_*.sql what is
refused.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sqlglot.tokenizer_core import TokenType

from headrace.core.errors import BadDefinition
from headrace.define.decision_table import read_table
from headrace.define.rules import ELSE, DecisionRule, DecisionRules, SqlFragment
from headrace.define.tokens import TokenCursor

_OPENS, _CLOSES = {"(", "CASE"}, {")", "END"}


def read_rules(tokens: TokenCursor, name: str, folder: Path) -> tuple[SqlFragment, DecisionRules]:
    """The source, as it may follow FROM, and the rules."""
    tokens.expect("ON")
    source = _text_until(tokens, f"rules '{name}'", "the stream after ON", _clause)
    every, column = _matching(tokens)
    if tokens.accept("FROM"):
        origin, location = tokens.origin, tokens.literal()
        tokens.end()
        read = read_table(folder, location, name, origin)
    else:
        read = _Reader(tokens, name).rules()
    rules, otherwise = read
    made = DecisionRules(rules, otherwise, every, column)
    _check(made, name)
    return source, made


def _matching(tokens: TokenCursor) -> tuple[bool, str]:
    """FIRST MATCH or ALL MATCHES, and the column with the name of the rule that matched."""
    every = tokens.accept("ALL")
    said = every or tokens.accept("FIRST")
    if said:
        tokens.expect("MATCHES" if every else "MATCH")
    if not (said and tokens.accept("AS")):
        return every, "rules" if every else "rule"
    origin, column = tokens.origin, tokens.name("the column of decisions")
    if column.startswith("_"):
        raise tokens.error("column names that begin with '_' are reserved", origin)
    return every, column


class _Reader:
    """RULE … RULE … ELSE …"""

    def __init__(self, tokens: TokenCursor, name: str) -> None:
        self.tokens, self.name = tokens, name

    def rules(self) -> tuple[tuple[DecisionRule, ...], DecisionRule | None]:
        found: list[DecisionRule] = []
        otherwise = None
        while not self.tokens.done:
            origin = self.tokens.origin
            if otherwise:
                raise self.tokens.error(f"rules '{self.name}': ELSE must come last")
            if self.tokens.accept(ELSE.upper()):
                otherwise = DecisionRule(ELSE, (), self._sets("ELSE"), origin)
            else:
                found.append(self._rule())
        return tuple(found), otherwise

    def _rule(self) -> DecisionRule:
        place = self.tokens.origin
        self.tokens.expect("RULE")
        name = self.tokens.name("the rule")
        where = f"rule '{name}'"
        self.tokens.expect("WHEN")
        condition = _text_until(self.tokens, where, "the condition after WHEN", _then)
        self.tokens.expect("THEN")
        return DecisionRule(name, (condition,), self._sets(where), place)

    def _sets(self, where: str) -> tuple[tuple[str, SqlFragment], ...]:
        self.tokens.expect("SET")
        return self.tokens.listed(lambda: self._set(where))

    def _set(self, where: str) -> tuple[str, SqlFragment]:
        field = self.tokens.name("a field")
        self.tokens.expect("=")
        value = _text_until(self.tokens, where, f"the value of '{field}'", _next_field)
        return field, value


def _text_until(
    tokens: TokenCursor, where: str, what: str, ends: Callable[[TokenCursor], bool]
) -> SqlFragment:
    """The text up to where it ends, outside parentheses and CASE."""
    first, origin, depth = tokens.at, tokens.origin, 0
    while not tokens.done and (depth or not ends(tokens)):
        depth += _steps(tokens)
        tokens.at += 1
    if tokens.at == first:
        raise tokens.error(f"{where}: {what} is missing", origin)
    return SqlFragment(tokens.text_from(first), origin, where)


def _steps(tokens: TokenCursor) -> int:
    word = tokens.peek()
    # `hour.end` is a field.
    return 0 if _after_dot(tokens) else (word in _OPENS) - (word in _CLOSES)


def _clause(tokens: TokenCursor) -> bool:
    """Whether the next clause of the rules begins here."""
    word, after, third = (tokens.peek(number) for number in range(3))
    if _after_dot(tokens):
        return False
    if word == "RULE":
        return third == "WHEN" or tokens.kind(1) is TokenType.VAR
    if word == "FROM":
        return tokens.kind(1) is TokenType.STRING
    return word == "ELSE" or (word in {"FIRST", "ALL"} and after in {"MATCH", "MATCHES"})


def _then(tokens: TokenCursor) -> bool:
    return tokens.starts_with("THEN") or _clause(tokens)


def _next_field(tokens: TokenCursor) -> bool:
    return tokens.starts_with(",") or _clause(tokens)


def _after_dot(tokens: TokenCursor) -> bool:
    return tokens.kind(-1) is TokenType.DOT


def _check(made: DecisionRules, name: str) -> None:
    seen: set[str] = set()
    for rule in made.rules:
        if rule.name.lower() == ELSE:
            raise BadDefinition(
                "a rule cannot be named 'else'",
                hint="write the default as ELSE SET … after the last rule.",
                origin=rule.origin,
            )
        if rule.name.lower() in seen:
            raise BadDefinition(
                f"rules '{name}' have two rules named '{rule.name}'", origin=rule.origin
            )
        seen.add(rule.name.lower())
    for rule in made.every:
        _check_fields(rule, made.column)


def _check_fields(rule: DecisionRule, column: str) -> None:
    seen: set[str] = set()
    for field, sql in rule.sets:
        if field.startswith("_"):
            raise BadDefinition(
                f"{sql.where}: field names that begin with '_' are reserved: '{field}'",
                origin=sql.origin,
            )
        if field.lower() == column.lower():
            raise BadDefinition(
                f"{sql.where}: '{field}' cannot be set: it contains the name of the matched rule",
                hint="rename that column with FIRST MATCH AS name or ALL MATCHES AS name.",
                origin=sql.origin,
            )
        if field.lower() in seen:
            raise BadDefinition(f"{sql.where}: '{field}' is set twice", origin=sql.origin)
        seen.add(field.lower())
