"""`CREATE RULES … ON stream`: which rule matches an event, and the fields that it sets.

The rules are tried one after the other on each row of the stream and its joins. With FIRST MATCH
the first whose condition is true decides, with ALL MATCHES all of them do and a later one sets
over an earlier one; ELSE decides where no rule does. Conditions and values see the row as it came,
never what a rule has set. A field that no deciding rule sets keeps the event's own value, which is
NULL where the stream has no such column.
tests/testing/test_rules.py and tests/transcripts/rules_*.yaml check it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from headrace.testing.reference.decision_table import TableCell, TableRule, table_rules
from headrace.testing.reference.expressions import evaluate, true
from headrace.testing.reference.names import HIDDEN, NameScope, read, resolve, tokens_of
from headrace.testing.reference.order import EVENT_TIME
from headrace.testing.reference.relations import Clock, QueryRunner, SelectInput, Table, TableLookup
from headrace.testing.reference.sources import relation_of
from headrace.testing.reference.values import Row, Value

ELSE = "else"


@dataclass(frozen=True, slots=True)
class ReferenceRule:
    """When all of `tests` hold, each field of `sets` has its value."""

    name: str
    tests: tuple[exp.Expr | TableCell, ...]
    sets: Mapping[str, exp.Expr]

    def resolved(self, scope: NameScope) -> ReferenceRule:
        tests = tuple(
            test.resolved(scope) if isinstance(test, TableCell) else resolve(test, scope)
            for test in self.tests
        )
        return ReferenceRule(
            self.name, tests, {name: resolve(e, scope) for name, e in self.sets.items()}
        )

    def holds(self, row: Row) -> bool:
        return all(
            test.holds(row) if isinstance(test, TableCell) else true(test, row)
            for test in self.tests
        )


@dataclass(frozen=True, slots=True)
class ReferenceRules:
    """The rules of one stream, in order; `column` says which of them decided."""

    source: exp.Select
    rules: tuple[ReferenceRule, ...]
    column: str = "rule"
    all_matches: bool = False

    def deciding(self, row: Row) -> list[ReferenceRule]:
        found = [rule for rule in self.rules if rule.name != ELSE and rule.holds(row)]
        found = found or [rule for rule in self.rules if rule.name == ELSE]
        return found if self.all_matches else found[:1]

    def decision(self, deciding: list[ReferenceRule]) -> Value:
        names = [rule.name for rule in deciding]
        return names if self.all_matches else next(iter(names), None)


def rules_of(text: str, files: Mapping[str, str]) -> ReferenceRules | None:
    """The rules of a definition, if it is CREATE RULES.

    >>> found = rules_of("ON s RULE big WHEN n > 9 THEN SET size = 'L'", {})
    >>> [(rule.name, list(rule.sets)) for rule in found.rules]
    [('big', ['size'])]
    """
    tokens = tokens_of(text)
    if not tokens or tokens[0].text.upper() != "ON":
        return None
    first, *parts = list(_parts(tokens))
    source = read(f"SELECT * FROM {_text(text, first[1:])}")
    found, column, every = [], "", False
    for part in parts:
        match [token.text.upper() for token in part[:2]]:
            case ["FIRST" | "ALL" as word, _]:
                every, column = word == "ALL", part[3].text if len(part) > 2 else ""
            case ["FROM", _]:
                found += [_of_line(line) for line in table_rules(files[part[1].text])]
            case ["ELSE", _]:
                found.append(ReferenceRule(ELSE, (), _sets(text, part[2:])))
            case _:
                found.append(_rule(text, part))
    return ReferenceRules(source, tuple(found), column or ("rules" if every else "rule"), every)


def apply_rules(rules: ReferenceRules, named: TableLookup, answered: QueryRunner) -> Table:
    """The stream that rules make of another."""
    relation = relation_of(rules.source, named, answered)
    origin = rules.source.args["from_"].this
    alias = origin.alias_or_name.lower()
    names = list(named(origin.name).names)
    fields = [name for rule in rules.rules for name in rule.sets]
    known = {name.lower() for name in names}
    for name in (*fields, rules.column):
        if name.lower() not in known:
            names.append(name)
            known.add(name.lower())
    meant = [rule.resolved(relation.scope) for rule in rules.rules]
    resolved = replace(rules, rules=tuple(meant))
    rows = [_row(resolved, row, alias) for row in relation.rows]
    return Table(tuple(names), rows, _clock(relation, fields))


def _row(rules: ReferenceRules, row: Row, alias: str) -> dict[str, Value]:
    event = {name: value for (owner, name), value in row.items() if owner == alias}
    deciding = rules.deciding(row)
    made = dict(event)
    for rule in deciding:
        made |= {name.lower(): evaluate(value, row) for name, value in rule.sets.items()}
    made[rules.column.lower()] = rules.decision(deciding)
    return made | {name: event[name] for name in (*HIDDEN, EVENT_TIME) if name in event}


def _clock(relation: SelectInput, fields: list[str]) -> Clock | None:
    """The stream's clock, unless a rule sets the column that it is read from."""
    clock = relation.clock
    if clock is None or clock.key[1] in {field.lower() for field in fields}:
        return None
    return replace(clock, key=("", clock.key[1]))


# The text


def _parts(tokens: list[Token]) -> Iterator[list[Token]]:
    """The stream with its joins, then each clause that begins at the top level of the text."""
    part: list[Token] = []
    for number, (token, depth) in enumerate(_with_depth(tokens)):
        if depth == 0 and _begins(tokens[number : number + 3]):
            yield part
            part = []
        part.append(token)
    yield part


def _begins(tokens: list[Token]) -> bool:
    words = [*map(_word, tokens), "", ""]
    if words[0] == "FROM":
        return tokens[1].token_type is TokenType.STRING
    if words[0] == "RULE":
        return words[2] == "WHEN"
    return words[:2] in (["FIRST", "MATCH"], ["ALL", "MATCHES"], ["ELSE", "SET"])


def _with_depth(tokens: list[Token]) -> Iterator[tuple[Token, int]]:
    """Each token with how many parentheses and CASEs are open around it."""
    depth, before = 0, ""
    for token in tokens:
        word = _word(token)
        depth -= word == ")"
        yield token, depth
        depth += word == "("
        depth += (word == "CASE") - (word == "END") if before != "." else 0
        before = word


def _word(token: Token) -> str:
    """The token in capitals; a text in quotes is not a word."""
    return "" if token.token_type is TokenType.STRING else token.text.upper()


def _rule(text: str, part: list[Token]) -> ReferenceRule:
    """RULE name WHEN condition THEN SET …"""
    then = next(
        number
        for number, (token, depth) in enumerate(_with_depth(part))
        if depth == 0 and _word(token) == "THEN"
    )
    condition = _expression(_text(text, part[3:then]))
    return ReferenceRule(part[1].text, (condition,), _sets(text, part[then + 2 :]))


def _sets(text: str, part: list[Token]) -> dict[str, exp.Expr]:
    """name = value, name = value"""
    items: list[list[Token]] = [[]]
    for token, depth in _with_depth(part):
        if depth == 0 and token.token_type is TokenType.COMMA:
            items.append([])
        else:
            items[-1].append(token)
    return {item[0].text: _expression(_text(text, item[2:])) for item in items}


def _of_line(line: TableRule) -> ReferenceRule:
    tests = tuple(
        _expression(cell) if isinstance(cell, str) else TableCell(_expression(cell[0]), cell[1])
        for cell in line.tests
    )
    name = ELSE if line.name.lower() == ELSE else line.name
    return ReferenceRule(
        name, tests, {field: _expression(text) for field, text in line.sets.items()}
    )


def _text(text: str, tokens: list[Token]) -> str:
    return text[tokens[0].start : tokens[-1].end + 1]


def _expression(text: str) -> exp.Expr:
    item: exp.Expr = read(f"SELECT {text} AS it").expressions[0]
    return item.unalias()
