"""The output of a match: its measures, once or for each of its rows.

With ALL ROWS PER MATCH there are two trails: one of the whole match, which FINAL asks, and one that
grows row by row. tests/pattern/test_matcher.py checks what comes out.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import msgspec

from headrace.core.pattern import MatchId, Pattern, RowsPerMatch, variables
from headrace.pattern.attempt import FoundMatch
from headrace.pattern.code import Code
from headrace.pattern.evaluate import ExpressionCompiler, leaves
from headrace.pattern.trail import Row, Trail, TrailSlots, match_id


class OutputRow(msgspec.Struct, frozen=True):
    """A row of the result: the input row whose place it has, and measures in the order in which the
    pattern has them. `last_us` is the time of the match's last row.
    """

    row: Row
    measures: tuple[Any, ...]
    last_us: int


class MatchOutput:
    def __init__(self, pattern: Pattern, code: Code) -> None:
        columns = {column: i for i, column in enumerate(pattern.columns)}
        needs = TrailSlots(dict(pattern.subsets))
        scope = ExpressionCompiler(columns, needs)
        self.code, self.mode = code, pattern.rows
        self.measures = [scope.closure(measure) for _, measure in pattern.measures]
        asked = chain.from_iterable(leaves(measure) for _, measure in pattern.measures)
        self.identifies = any(isinstance(leaf, MatchId) for leaf in asked)
        self.whole = Trail(needs, variables(pattern.node), columns)
        self.now = Trail(needs, variables(pattern.node), columns)
        self.now.whole = self.whole
        self.nothing = (None,) * len(self.measures)

    def of_match(
        self, rows: list[Row], start: int, found: FoundMatch, number: int, ended: bool
    ) -> Iterator[OutputRow]:
        """The rows of a match; NotRipe if a measure asks for a row that may still come."""
        path, takes = found
        labels = [self.code.names[i] for i in takes]
        self.begin(rows, start, path, labels, number, ended)
        self.whole.extend(path, labels)
        if self.mode is RowsPerMatch.ONE or not path:
            if path or self.mode is not RowsPerMatch.OMIT_EMPTY:
                last = rows[path[-1] if path else start]
                yield OutputRow(last, tuple([of(self.whole) for of in self.measures]), last[0])
            return
        last_us = rows[path[-1]][0]
        for at, label, take in zip(path, labels, takes, strict=True):
            self.now.push(at, label)
            if not self.code.excluded[take]:
                yield OutputRow(rows[at], tuple([of(self.now) for of in self.measures]), last_us)

    def begin(
        self,
        rows: list[Row],
        start: int,
        path: list[int],
        labels: list[str],
        number: int,
        ended: bool,
    ) -> None:
        for trail in (self.whole,) if self.mode is RowsPerMatch.ONE else (self.whole, self.now):
            trail.begin(rows, number, ended)
            if self.identifies:
                trail.identity = match_id([rows[at][1] for at in path or [start]], labels)

    def unmatched(self, row: Row) -> OutputRow:
        return OutputRow(row, self.nothing, row[0])
