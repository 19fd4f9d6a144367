"""Decision rules as they were said: tests in order, and what each rule sets.

A test is SQL, or a cell of a decision table, whose meaning waits for the type of its subject. Each
piece knows its place and, in a few words, what it belongs to, so that any later error can say it.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.core.origin import Origin

ELSE = "else"  # what the column of decisions says of ELSE


@dataclass(frozen=True, slots=True)
class Sql:
    """A piece of SQL as written; `where` is such as "rule 'roaming', column 'SET zone'"."""

    text: str
    origin: Origin
    where: str


@dataclass(frozen=True, slots=True)
class Cell:
    """What a cell says of its column: an operator and the texts that are compared with."""

    subject: Sql
    operator: str  # =, !=, >=, <=, >, <, range, null or not null
    values: tuple[str, ...]
    origin: Origin
    where: str


@dataclass(frozen=True, slots=True)
class Rule:
    """If all tests are true, each field has its value."""

    name: str
    tests: tuple[Sql | Cell, ...]
    sets: tuple[tuple[str, Sql], ...]
    origin: Origin

    def value(self, field: str) -> Sql | None:
        return next((sql for name, sql in self.sets if name.lower() == field.lower()), None)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a stream in their order, and what holds if none of them decides."""

    rules: tuple[Rule, ...]
    otherwise: Rule | None = None
    all_matches: bool = False
    column: str = "rule"  # says which rule decided, or in an array which rules did

    @property
    def every(self) -> tuple[Rule, ...]:
        """All rules, ELSE as the last."""
        return (*self.rules, self.otherwise) if self.otherwise else self.rules

    @property
    def names(self) -> list[str]:
        """The names of all rules, ELSE included."""
        return [rule.name for rule in self.every]

    @property
    def fields(self) -> list[str]:
        """The fields that any rule sets, as first written."""
        found: dict[str, str] = {}
        for rule in self.every:
            for name, _ in rule.sets:
                found.setdefault(name.lower(), name)
        return list(found.values())
