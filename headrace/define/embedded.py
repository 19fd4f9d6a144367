"""Every piece of SQL in a definition, each as a query of its own.

All checks of the SQL of a definition (what it reads, whether it is allowed) use this module, so
that none misses the condition of a variable or of WHEN. tests/define/test_embedded.py checks that
each clause which takes SQL gives its piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from headrace.core.origin import Origin
from headrace.define.definitions import (
    MATCHED,
    MatchDefinition,
    QueryDefinition,
    RuleDefinition,
    WatchDefinition,
)
from headrace.define.dialect import parse_query
from headrace.define.queries import query_of
from headrace.define.rules import CellTest
from headrace.define.tokens import words_in


@dataclass(frozen=True, slots=True)
class EmbeddedQuery:
    """A query, and the place of the text that it is made of."""

    text: str
    origin: Origin

    @property
    def tree(self) -> exp.Query:
        return parse_query(self.text, self.origin)

    @property
    def relations(self) -> set[str]:
        """The names that it reads; a name of several parts by the last."""
        return {table.name for table in self.tree.find_all(exp.Table)} - {MATCHED}


def embedded_queries(said: RuleDefinition | WatchDefinition) -> Iterator[EmbeddedQuery]:
    """All SQL of a definition.

    >>> from headrace.define.statements import read_statements
    >>> text = "CREATE WATCH w AS SELECT a FROM s UNTIL '2030-01-01' WHEN (a > 9)"
    >>> [query.text for query in embedded_queries(read_statements(text, "w")[0])]
    ['SELECT a FROM s', 'SELECT 1 WHERE a > 9']
    """
    if isinstance(said, WatchDefinition):
        yield EmbeddedQuery(said.query, said.query_origin)
        if said.when:
            yield EmbeddedQuery(f"SELECT 1 WHERE {said.when.sql}", said.when.origin)
    else:
        yield from queries_in(
            query_of("stream", said.name, said.query, said.origin, said.query_origin)
        )


def queries_in(query: QueryDefinition) -> Iterator[EmbeddedQuery]:
    """All SQL of a view or stream."""
    yield EmbeddedQuery(query.query, query.query_origin)
    if query.match:
        yield from _of_match(query.match, query.query_origin)
    if query.threshold and (counted := query.threshold.counted):
        yield EmbeddedQuery(f"SELECT {counted.sql}", counted.origin)
    for rule in query.rules.every if query.rules else ():
        tests = (test.subject if isinstance(test, CellTest) else test for test in rule.tests)
        for piece in (*tests, *(sql for _, sql in rule.sets)):
            yield EmbeddedQuery(f"SELECT {piece.text}", piece.origin)


def words_of(query: QueryDefinition) -> frozenset[str]:
    """The words and names of a view or stream in lower case."""
    return frozenset[str]().union(*(words_in(embedded.text) for embedded in queries_in(query)))


def _of_match(match: MatchDefinition, origin: Origin) -> Iterator[EmbeddedQuery]:
    yield EmbeddedQuery(match.select, origin)
    for phrase in match.order:
        yield EmbeddedQuery(f"SELECT 1 ORDER BY {phrase.sql}", phrase.origin)
    for phrase in (*match.measures, *match.conditions):
        yield EmbeddedQuery(f"SELECT {phrase.sql}", phrase.origin)
