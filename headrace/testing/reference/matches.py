"""`SELECT … FROM stream MATCH_RECOGNIZE (…)`: the rows that the matches of a stream give.

The rows of a key are in the order of their times, then of the log; the ripe ones, which are dated
before the watermark, are searched. What is decided comes out; the rest waits. In a closed input all
rows are ripe. A row has the place in the log of its match's last row, or with ALL ROWS of itself.
tests/conformance checks it with a table of patterns, the transcripts `match_*` as streams.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.core.errors import BadDefinition, UnknownColumn, Unsupported
from headrace.testing.reference.match_clause import MatchClause
from headrace.testing.reference.matching import (
    Found,
    KeyRows,
    MissingRow,
    SearchSpec,
    StepBudget,
    find_matches,
)
from headrace.testing.reference.names import HIDDEN, key_column
from headrace.testing.reference.navigation import (
    Expression,
    MatchContext,
    MatchedRow,
    MatchNames,
    expression_of,
)
from headrace.testing.reference.order import EVENT_TIME, by_key, log_position
from headrace.testing.reference.patterns import EndAnchor, RowPattern, leaves, variables
from headrace.testing.reference.relations import Table
from headrace.testing.reference.sources import aliased
from headrace.testing.reference.validation import refuse_negations, refuse_skip
from headrace.testing.reference.values import Row, Value

Answer = dict[str, Value]
STEPS_BACK = 100  # of the steps of a key, an attempt gives back one of so many


@dataclass(frozen=True, slots=True)
class ResolvedMatch:
    """A clause whose names are resolved; `names` are the columns that come out."""

    clause: MatchClause
    search: SearchSpec
    measures: dict[str, Expression]
    skip_to: tuple[str, ...]
    names: tuple[str, ...]


def matched(
    clause: MatchClause, table: Table, *, closed: bool, steps_max: int | None = None
) -> Table:
    """What the matches give: a stream of its own, for the clause's SELECT. `steps_max` is how many
    rows the ways of a key may take and skip, where what they take decides about conditions."""
    meant = _meant(clause, table, closed=closed, steps_max=steps_max)
    clock = table.clock
    keys = [key_column(("", key)) for key in clause.keys]
    rows: list[Answer] = []
    for group in by_key(keys, aliased(table, "").rows):
        ripe = _ripe(clause, group, clock.watermark_us if clock else None, closed=closed)
        rows += _Key(meant, ripe).answers()
    return Table(meant.names, rows)


def _ripe(
    clause: MatchClause, rows: list[Row], watermark_us: int | None, *, closed: bool
) -> KeyRows:
    time = ("", clause.time)
    timed = [row for row in rows if row.get(time) is not None]
    if not closed:
        timed = [row for row in timed if watermark_us is not None and row[time].us < watermark_us]
    timed.sort(key=lambda row: (row[time].us, log_position(row)))
    return KeyRows(tuple(timed), tuple(row[time].us for row in timed), watermark_us, closed)


@dataclass(frozen=True, slots=True)
class _Match:
    """The rows of a match and its number; an empty one is known by its start row."""

    start: int
    taken: Found
    number: int


@dataclass
class _Key:
    """The search through the rows of one key."""

    meant: ResolvedMatch
    rows: KeyRows

    def answers(self) -> list[Answer]:
        """The rows of all decided matches, then those that are in none."""
        answers, held = list[Answer](), set[int]()
        start = number = 0
        left = most = self.meant.search.steps_max
        while start < len(self.rows.rows):
            steps = StepBudget(left)
            try:
                matches = self._matches(start, number, steps)
                answers += [answer for match in matches for answer in self._shown(match)]
            except MissingRow:
                break
            if steps.given_up:
                break  # the key is ignored
            if most is not None and left is not None and steps.taken:
                left = min(most, left - steps.taken + max(1, most // STEPS_BACK))
            held |= {one.row for match in matches for one in match.taken}
            held |= {match.start for match in matches if not match.taken}
            number += len(matches)
            start = self._next(start, matches)
        if self.meant.clause.unmatched:
            answers += [self._unmatched(row) for row in range(start) if row not in held]
        return answers

    def _matches(self, start: int, number: int, steps: StepBudget) -> list[_Match]:
        ways = find_matches(self.meant.search, self.rows, start, number + 1, steps)
        return [_Match(start, taken, number + i) for i, taken in enumerate(ways, start=1)]

    def _next(self, start: int, matches: list[_Match]) -> int:
        """The row where the search continues."""
        skip = self.meant.clause.skip
        if not matches or not matches[0].taken or skip.to == "NEXT":
            return start + 1
        taken = matches[0].taken
        if skip.to == "PAST":
            return taken[-1].row + 1
        rows = [one.row for one in taken if one.variable in self.meant.skip_to]
        return rows[0] if skip.to == "FIRST" else rows[-1]

    # What comes out

    def _shown(self, match: _Match) -> Iterator[Answer]:
        clause, taken = self.meant.clause, match.taken
        if not taken and not (clause.all_rows and clause.omit_empty):
            yield self._answer(match.start, self._measured(match, ()))
        elif taken and not clause.all_rows:
            yield self._answer(taken[-1].row, self._measured(match, taken))
        elif clause.all_rows:
            for count, one in enumerate(taken, start=1):
                if not one.excluded:
                    yield self._answer(one.row, self._measured(match, taken[:count]))

    def _measured(self, match: _Match, so_far: tuple[MatchedRow, ...]) -> Answer:
        seen = MatchContext(so_far, match.taken, self.rows.at, match.number, self._id(match))
        return {name.lower(): e.value(seen) for name, e in self.meant.measures.items()}

    def _unmatched(self, row: int) -> Answer:
        return self._answer(row, dict.fromkeys(map(str.lower, self.meant.measures)))

    def _answer(self, row: int, measured: Answer) -> Answer:
        """A row that comes out: the columns of a row that are asked for, and the measures."""
        event = {name: value for (_, name), value in self.rows.rows[row].items()}
        kept = (*self.meant.names, "_partition", "_offset", EVENT_TIME)
        return {n.lower(): event[n.lower()] for n in kept if n.lower() in event} | measured

    def _id(self, match: _Match) -> str:
        """A hash of the match that does not depend on the engine."""
        rows = [(one.row, one.variable) for one in match.taken] or [(match.start, "")]
        return " ".join(f"{log_position(self.rows.rows[row])}{name}" for row, name in rows)


# Resolving a clause


def _meant(
    clause: MatchClause, table: Table, *, closed: bool, steps_max: int | None
) -> ResolvedMatch:
    _refuse_order(clause, table, closed=closed)
    known = variables(clause.pattern)
    groups = {name: (name,) for name in known} | _subsets(clause, known)
    _refuse_clause(clause, groups, closed=closed)
    names = MatchNames(frozenset(map(str.lower, (*table.names, *HIDDEN))), groups)
    defined = {
        name: expression_of(text, names, define=True) for name, text in clause.defined.items()
    }
    measures = {
        name: expression_of(text, names, define=False) for name, text in clause.measures.items()
    }
    free = all(condition.of_row(name) for name, condition in defined.items())
    bound = None if free else steps_max
    search = SearchSpec(clause.pattern, defined, clause.within_us, clause.till, bound)
    columns = _columns(clause, table)
    return ResolvedMatch(clause, search, measures, groups.get(clause.skip.variable, ()), columns)


def _refuse_order(clause: MatchClause, table: Table, *, closed: bool) -> None:
    known = set(map(str.lower, table.names))
    for name in (*clause.keys, clause.time):
        if name not in known:
            raise UnknownColumn(f"'{clause.stream}' has no column '{name}' for MATCH_RECOGNIZE")
    if not closed and table.clock is None:
        raise BadDefinition(
            f"MATCH_RECOGNIZE requires a stream with a watermark: '{clause.stream}'"
        )
    if table.clock and table.clock.key[1] != clause.time:
        raise BadDefinition("MATCH_RECOGNIZE requires ORDER BY the event time, ascending")


def _subsets(clause: MatchClause, known: list[str]) -> dict[str, tuple[str, ...]]:
    for name, members in clause.subsets.items():
        if name in known:
            raise BadDefinition(f"SUBSET {name} has the name of a pattern variable")
        for member in members:
            if member not in known:
                raise BadDefinition(f"SUBSET {name}: {member} is not a pattern variable")
    return dict(clause.subsets)


def _refuse_clause(
    clause: MatchClause, groups: dict[str, tuple[str, ...]], *, closed: bool
) -> None:
    pattern, skip = clause.pattern, clause.skip
    for name in clause.defined:
        if groups.get(name) is None or name in clause.subsets:
            raise BadDefinition(f"DEFINE: {name} is not a pattern variable")
    if not closed and any(isinstance(leaf, EndAnchor) for leaf in leaves(pattern)):
        raise Unsupported("$ is not supported over a stream, because a stream has no last row")
    if clause.unmatched and any(isinstance(x, RowPattern) and x.excluded for x in leaves(pattern)):
        raise BadDefinition("an exclusion {- -} is not allowed with WITH UNMATCHED ROWS")
    refuse_negations(pattern, within=clause.within_us is not None)
    if clause.till == "ANY":
        _refuse_any(clause)
    if skip.variable and skip.variable not in groups:
        raise BadDefinition(f"SKIP TO: {skip.variable} is not a pattern variable")
    if skip.variable:
        refuse_skip(pattern, skip.variable, groups[skip.variable], first=skip.to == "FIRST")


def _refuse_any(clause: MatchClause) -> None:
    if clause.within_us is None:
        raise BadDefinition("SKIP TILL ANY requires WITHIN")
    if clause.skip.to != "NEXT":
        raise BadDefinition("SKIP TILL ANY requires AFTER MATCH SKIP TO NEXT ROW")


def _columns(clause: MatchClause, table: Table) -> tuple[str, ...]:
    written = {name.lower(): name for name in table.names}
    first = [written[key] for key in clause.keys]
    others = [name for name in table.names if name.lower() not in {*clause.keys, clause.time}]
    names = [*first, *clause.measures]
    if clause.all_rows:
        names = [*first, written[clause.time], *clause.measures, *others]
    folded = list(map(str.lower, dict.fromkeys(names) if clause.time in clause.keys else names))
    twice = next((name for name in folded if folded.count(name) > 1), None)
    if twice:
        raise BadDefinition(f"duplicate column name '{twice}' in the matches")
    return tuple(names)
