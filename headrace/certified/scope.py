"""What the names in one SELECT mean: a column by url, v.url, hour.start or v.hour.start.

A name that this SELECT does not know may be one of the query around it. A name that two relations
have is refused, as in Spark. tests/certified/test_select.py has the sentences.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from headrace.certified.relation import AnswerColumn
from headrace.certified.typed import Typed, quoted
from headrace.certified.types import WINDOW
from headrace.core.errors import BadQuery


@dataclass(slots=True)
class Source:
    """A relation in FROM, under its alias."""

    alias: str
    columns: tuple[AnswerColumn, ...]
    shown: bool = True  # the right side of a semi join is not

    def sql_of(self, column: AnswerColumn) -> str:
        return f"{quoted(self.alias)}.{quoted(column.name)}"


@dataclass(slots=True)
class Scope:
    """What the names in a SELECT mean."""

    sources: list[Source] = field(default_factory=list)
    merged: dict[str, AnswerColumn] = field(default_factory=dict)  # of JOIN … USING, by name
    outer: Scope | None = None

    def find(self, node: exp.Column) -> Typed | None:
        """A column by url, v.url, hour.start or v.hour.start."""
        parts = [part.name.lower() for part in node.parts]
        if len(parts) == 1 and parts[0] in self.merged:
            return of_column(quoted(self.merged[parts[0]].name), self.merged[parts[0]])
        if len(parts) == 2 and self._merged_window(parts[0]) and parts[1] in {"start", "end"}:
            column = self.merged[parts[0]]
            return Typed(f'({quoted(column.name)})."{parts[1]}"', "TIMESTAMP", column.estimate)
        found = [
            typed for source in self.sources if source.shown for typed in _matches(source, parts)
        ]
        if len(found) > 1:
            raise BadQuery(f"'{node.sql()}' may mean several columns", hint="say which, as in a.b.")
        if found:
            return found[0]
        return self.outer.find(node) if self.outer else None

    def _merged_window(self, name: str) -> bool:
        """Whether a name is that of a window, which both sides of USING have."""
        named = any(source.alias.lower() == name for source in self.sources)
        return not named and name in self.merged and self.merged[name].type == WINDOW

    def names(self) -> list[str]:
        return [column.name for source in self.sources for column in source.columns]


def of_column(sql: str, column: AnswerColumn) -> Typed:
    return Typed(sql, column.type, column.estimate, key=column.key)


def _matches(source: Source, parts: list[str]) -> list[Typed]:
    """What a name of one to three parts means in one relation."""
    ways: list[tuple[str, str | None]] = []
    if len(parts) == 1:
        ways = [(parts[0], None)]
    elif len(parts) == 2:
        ways = [(parts[1], None)] if parts[0] == source.alias.lower() else []
        ways += [(parts[0], parts[1])]
    elif len(parts) == 3 and parts[0] == source.alias.lower():
        ways = [(parts[1], parts[2])]
    found = []
    for name, edge in ways:
        column = next((c for c in source.columns if c.name.lower() == name), None)
        if column is None or (edge and (column.type != WINDOW or edge not in {"start", "end"})):
            continue
        sql = source.sql_of(column)
        if edge:
            found.append(Typed(f'({sql})."{edge}"', "TIMESTAMP", column.estimate))
        else:
            found.append(of_column(sql, column))
    return found
