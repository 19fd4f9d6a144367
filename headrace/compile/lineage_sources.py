"""The lineage of columns that do not come from a SELECT: those of patterns, thresholds, decision
rules and processors.

The sources of each are derived from the sources of the columns of the query below.
tests/compile/test_lineage.py reads each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from headrace.compile.derive import THRESHOLD_COLUMNS
from headrace.core.errors import HeadraceError
from headrace.core.origin import Origin
from headrace.core.pattern import RowsPerMatch
from headrace.define.definitions import MatchDefinition, QueryDefinition
from headrace.define.dialect import parse_query
from headrace.define.rules import CellTest, DecisionRule, DecisionRules, SqlFragment

Sources = set[tuple[str, str]]  # object and column
Selected = Mapping[str, Sources]
ColumnSources = Iterator[tuple[str, Sources]]
ROWS = "*"  # instead of a column: the rows themselves


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """The columns of the query below, with their sources."""

    selected: Selected
    time: str | None  # the column of the event time
    outputs: tuple[str, ...] = ()  # the columns of a processor, which functions.py defines
    passed: tuple[str, ...] = ()  # the columns of the stream that decision rules read


def column_sources(definition: QueryDefinition, below: SourceColumns) -> ColumnSources:
    """The columns of a definition, each with its sources."""
    if definition.match:
        return _matched(definition.match, below.selected)
    if threshold := definition.threshold:
        return _reached(threshold.keys, below)
    if definition.processor:
        everything = _all(below.selected.values())
        return ((name, everything) for name in below.outputs)
    if definition.rules:
        return _decided(definition.rules, below)
    return iter(below.selected.items())


def _matched(match: MatchDefinition, selected: Selected) -> ColumnSources:
    given: dict[str, Sources] = {}
    if match.rows is not RowsPerMatch.ONE:
        given |= selected
    given |= {key: _named([key], selected) for key in match.keys}
    rows = {(object, ROWS) for object, _ in _all(selected.values())}
    given |= {measure.name: _said(measure.sql, selected) or rows for measure in match.measures}
    for item in _items(match.select):
        if item.is_star:
            yield from given.items()
        else:
            yield item.alias_or_name, _named(_names(item), given)


def _reached(keys: Iterable[str], below: SourceColumns) -> ColumnSources:
    for key in keys:
        yield key, _named([key], below.selected)
    for name in THRESHOLD_COLUMNS:
        yield name, _named([below.time] if below.time else [], below.selected)


def _decided(rules: DecisionRules, below: SourceColumns) -> ColumnSources:
    """The sources of a field are those of its values and of all conditions."""
    selected = below.selected
    tested = _all(_tested(rule, selected) for rule in rules.every)
    fields = {field.lower() for field in rules.fields}
    for name in below.passed:
        if name.lower() not in fields:
            yield name, _named([name], selected)
    for field in rules.fields:
        values = [value for rule in rules.every if (value := rule.value(field))]
        yield field, tested | _all(_said(value.text, selected) for value in values)
    yield rules.column, tested


def _tested(rule: DecisionRule, selected: Selected) -> Sources:
    return _all(_said(_text(test), selected) for test in rule.tests)


def _text(test: SqlFragment | CellTest) -> str:
    return test.text if isinstance(test, SqlFragment) else test.subject.text


def _said(sql: str, selected: Selected) -> Sources:
    """The sources of the columns that an SQL fragment names."""
    return _all(_named(_names(item), selected) for item in _items(f"SELECT {sql}"))


def _items(select: str) -> list[exp.Expr]:
    try:
        return list(parse_query(select, Origin("definition", 1)).expressions)
    except HeadraceError:
        return []


def _names(item: exp.Expr) -> list[str]:
    return [column.name for column in item.find_all(exp.Column)]


def _named(names: Iterable[str], selected: Selected) -> Sources:
    wanted = {name.lower() for name in names}
    return _all(sources for name, sources in selected.items() if name.lower() in wanted)


def _all(parts: Iterable[Sources]) -> Sources:
    return set[tuple[str, str]]().union(*parts)
