"""Decision rules as parsed: tests in order, and the fields that each rule sets.

A test is SQL, or a cell of a decision table, whose meaning waits for the type of its subject. Each
piece has its origin and the name of its rule and column, for later errors.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.core.origin import Origin

ELSE = "else"  # the value of the column of decisions for ELSE


@dataclass(frozen=True, slots=True)
class SqlFragment:
    """A piece of SQL as written; `where` is such as "rule 'roaming', column 'SET zone'"."""

    text: str
    origin: Origin
    where: str


@dataclass(frozen=True, slots=True)
class CellTest:
    """The test of a cell: an operator and the texts to compare with."""

    subject: SqlFragment
    operator: str  # =, !=, >=, <=, >, <, range, null or not null
    values: tuple[str, ...]
    origin: Origin
    where: str


@dataclass(frozen=True, slots=True)
class DecisionRule:
    """If all tests are true, each field has its value."""

    name: str
    tests: tuple[SqlFragment | CellTest, ...]
    sets: tuple[tuple[str, SqlFragment], ...]
    origin: Origin

    def value(self, field: str) -> SqlFragment | None:
        return next((sql for name, sql in self.sets if name.lower() == field.lower()), None)


@dataclass(frozen=True, slots=True)
class DecisionRules:
    """The rules of a stream in their order, and the default if none of them matches."""

    rules: tuple[DecisionRule, ...]
    otherwise: DecisionRule | None = None
    all_matches: bool = False
    column: str = "rule"  # the rule that matched, or an array of all that did

    @property
    def every(self) -> tuple[DecisionRule, ...]:
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
