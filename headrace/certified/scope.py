"""Resolves the names in one SELECT: a column by url or v.url, a field of one by user.name or
v.user.name, however deep.

A name that this SELECT does not know may be one of the query around it. A name that two relations
have is refused, as in Spark. tests/certified/test_select.py has the sentences.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from headrace.certified.nested import field_of
from headrace.certified.relation import AnswerColumn
from headrace.certified.typed import TypedSql, quoted
from headrace.core.errors import BadQuery


@dataclass(slots=True)
class AliasedRelation:
    """A relation in FROM, under its alias."""

    alias: str
    columns: tuple[AnswerColumn, ...]
    shown: bool = True  # the right side of a semi join is not

    def sql_of(self, column: AnswerColumn) -> str:
        return f"{quoted(self.alias)}.{quoted(column.name)}"


@dataclass(slots=True)
class Scope:
    """What the names in a SELECT mean."""

    sources: list[AliasedRelation] = field(default_factory=list)
    merged: dict[str, AnswerColumn] = field(default_factory=dict)  # of JOIN … USING, by name
    outer: Scope | None = None

    def find(self, node: exp.Column) -> TypedSql | None:
        """A column, or a field of one."""
        parts = [part.name.lower() for part in node.parts]
        named = any(source.alias.lower() == parts[0] for source in self.sources)
        if parts[0] in self.merged and (len(parts) == 1 or not named):
            column = self.merged[parts[0]]
            return _within(of_column(quoted(column.name), column), parts[1:])
        found = [
            typed for source in self.sources if source.shown for typed in _matches(source, parts)
        ]
        if len(found) > 1:
            raise BadQuery(
                f"column reference '{node.sql()}' is ambiguous", hint="qualify it, such as a.b."
            )
        if found:
            return found[0]
        return self.outer.find(node) if self.outer else None

    def names(self) -> list[str]:
        return [column.name for source in self.sources for column in source.columns]


def of_column(sql: str, column: AnswerColumn) -> TypedSql:
    return TypedSql(
        sql,
        column.type,
        column.estimate,
        key=column.key,
        lists=column.lists,
        bounds=column.bounds,
        rounded=column.rounded,
    )


def _within(value: TypedSql | None, path: list[str]) -> TypedSql | None:
    """The field at a path."""
    for name in path:
        value = field_of(value, name) if value is not None else None
    return value


def _matches(source: AliasedRelation, parts: list[str]) -> list[TypedSql]:
    """What a name means in one relation: parts[0] is the relation or a column of it."""
    ways = [(parts[0], parts[1:])]
    if len(parts) > 1 and parts[0] == source.alias.lower():
        ways.insert(0, (parts[1], parts[2:]))
    found = []
    for name, path in ways:
        column = next((c for c in source.columns if c.name.lower() == name), None)
        if column is not None:
            found.append(_within(of_column(source.sql_of(column), column), path))
    return [value for value in found if value is not None]
