"""The fold of a pattern: events of a key in, the rows of its decided matches out.

The matcher is given rows that are ripe: dated before the watermark, so that only a late event could
still come before them. The others wait in the key's state. `marks` gives the watermark at the end
of each group of epochs: a match belongs to the group in which it was decided. An event dated before
`since`, the watermark that the states have come to, cannot be placed: it is left out, and its key
ends as out of order. An event that is late within the fold is placed, and all that its key gives
then belongs to the newest group, because no earlier one could have known it. A key whose search is
given up has SET_ASIDE for a state, with the place of the row that it was given up at; its later
events are not searched. tests/carry/test_match.py checks that a fold may be cut anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import pyarrow as pa

from headrace.carry.ends import KeyEndRows
from headrace.carry.process import PLACE, ROWS_MAX, Marks
from headrace.carry.runs import runs
from headrace.compile.plan import MatchPlan
from headrace.core.event import ARRIVED_AT, CUT, KEY, SEQ, STATE, TIME
from headrace.core.pattern import SET_ASIDE, Pattern, Threshold
from headrace.pattern.matcher import Matcher
from headrace.pattern.threshold import ThresholdMatcher

NOTHING = b""  # the state of a key for which nothing is kept
_BIGINT = 1 << 63
Row = tuple[int, Any, tuple[Any, ...]]  # time, (seq, place), values


def match(
    batches: Iterable[pa.RecordBatch],
    plan: MatchPlan,
    marks: Marks,
    since_us: int | None,
    schema: pa.Schema,
    *,
    ended: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Find the matches in rows that are sorted by key and order; `ended` says that no more rows
    will come, so that all are ripe.
    """
    matching = _Matching(plan, marks, since_us, schema, ended)
    for batch in batches:
        yield from matching.take(batch)
    yield from matching.end()


class _Matching:
    """A single pass through sorted rows; it holds the rows of the key it is at."""

    def __init__(
        self,
        plan: MatchPlan,
        marks: Marks,
        since_us: int | None,
        schema: pa.Schema,
        ended: bool,
    ) -> None:
        self.plan, self.marks, self.since_us, self.schema = plan, marks, since_us, schema
        self.ended = ended
        self.matcher = searcher(plan.pattern)
        order = {name: n for n, name in enumerate(plan.pattern.columns)}
        self.passed = [order[name] for name, _ in plan.passed]
        self.outputs: list[tuple[Any, ...]] = []
        self.ends = KeyEndRows()
        self.key: str | None = None
        self.state: bytes | None = None
        self.state_at = (0, 0)
        self.rows: list[Row] = []
        self.cuts: list[int] = []

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        moments = batch[ARRIVED_AT].cast(pa.int64()).to_pylist()
        place = [moments if name == ARRIVED_AT else batch[name].to_pylist() for name in PLACE]
        values = [batch[name].to_pylist() for name in self.plan.pattern.columns]
        times, states, cuts = (batch[name].to_pylist() for name in (TIME, STATE, CUT))
        places = list(zip(batch[SEQ].to_pylist(), *place, strict=True))
        tuples = zip(*values, strict=True) if values else (() for _ in times)
        rows = list(zip(times, places, tuples, strict=True))
        for key, lower, upper in runs(batch[KEY]):
            if key != self.key:
                self.end_key()
                self.key, self.state, self.rows, self.cuts = key, None, [], []
            if states[lower] is not None:
                self.state, self.state_at = states[lower], (times[lower], places[lower][0])
                lower += 1
            self.rows += rows[lower:upper]
            self.cuts += cuts[lower:upper]
            if len(self.outputs) >= ROWS_MAX:
                yield self.given()
        if len(self.ends) >= ROWS_MAX:
            yield self.ends.batch(self.schema)
            self.ends = KeyEndRows()

    def end_key(self) -> None:
        if self.key is None:
            return
        rows, cuts, disordered = self.placed()
        if self.state == SET_ASIDE:
            if disordered:  # only a search of all rows shows whether it would exceed its steps
                self.ends.add(self.key, self.state_at, SET_ASIDE, None, disordered, None)
            return
        search, waiting = self.resumed()
        late = self.late(rows, cuts)
        marks = self.marks[-1:] if late else self.marks
        for group, mark_us in marks:
            came = rows if late else [r for r, cut in zip(rows, cuts, strict=True) if cut == group]
            waiting = sorted([*waiting, *came]) if waiting and came else (waiting or came)
            ripe = self.ripe(waiting, mark_us)
            search.take(waiting[:ripe])
            waiting = waiting[ripe:]
            for given in search.matches(mark_us, self.ended):
                self.give(given, group)
        self.keep(search, waiting, disordered, marks[-1][0] if late else None)

    def resumed(self) -> tuple[Any, list[Row]]:
        if not self.state:
            return self.matcher.begin(), []
        searched, waiting = msgspec.msgpack.decode(self.state)
        rows = [(time, tuple(place), tuple(values)) for time, place, values in waiting]
        search = self.matcher.begin() if searched is None else self.matcher.resume(searched)
        return search, rows

    def placed(self) -> tuple[list[Row], list[int], bool]:
        """The rows that have a place in what is still to be searched, and whether one has none."""
        since = self.since_us
        if since is None or not self.rows or self.rows[0][0] >= since:
            return self.rows, self.cuts, False
        pairs = [pair for pair in zip(self.rows, self.cuts, strict=True) if pair[0][0] >= since]
        return [row for row, _ in pairs], [cut for _, cut in pairs], True

    def late(self, rows: list[Row], cuts: list[int]) -> bool:
        """Whether a row is dated before the watermark of a group before its own."""
        if len(self.marks) < 2:
            return False
        floors, floor = dict[int, int | None](), None
        for group, mark_us in self.marks:
            floors[group], floor = floor, mark_us
        pairs = zip(rows, cuts, strict=True)
        return any((mark := floors[cut]) is not None and row[0] < mark for row, cut in pairs)

    def ripe(self, rows: list[Row], mark_us: int | None) -> int:
        """How many of the rows are ripe."""
        if self.ended:
            return len(rows)
        if mark_us is None:
            return 0
        if rows and rows[-1][0] < mark_us:
            return len(rows)
        return next((n for n, row in enumerate(rows) if row[0] >= mark_us), len(rows))

    def give(self, given: Any, group: int) -> None:
        time, (_, *place), values = given.row
        passed = [values[n] for n in self.passed]
        self.outputs.append((*passed, *given.measures, *place, group, time))

    def keep(self, search: Any, waiting: list[Row], disordered: bool, cut: int | None) -> None:
        """Output the key's state, if it has one, had one, or is out of order."""
        assert self.key is not None
        if search.given_up is not None:
            time, (seq, *_), _ = search.given_up
            self.ends.add(self.key, (time, seq), SET_ASIDE, None, disordered, cut)
            return
        searched = search.state()
        empty = searched is None and not waiting
        if empty and not self.state and not disordered and cut is None:
            return
        state = NOTHING if empty else msgspec.msgpack.encode([searched, waiting])
        dues = [search.due_us(), waiting[0][0] + 1 if waiting else None]
        timer = min((due for due in dues if due is not None), default=None)
        self.ends.add(self.key, (0, 0), state, timer, disordered, cut)

    def end(self) -> Iterator[pa.RecordBatch]:
        self.end_key()
        if self.outputs:
            yield self.given()
        yield self.ends.batch(self.schema)

    def given(self) -> pa.RecordBatch:
        names = [name for name, _ in self.plan.outputs]
        values = zip(*self.outputs, strict=True)
        columns = dict(zip([*names, *PLACE, CUT, TIME], values, strict=True))
        count, self.outputs = len(self.outputs), []
        arrays = [
            _typed(columns[f.name], f.type) if f.name in columns else pa.nulls(count, f.type)
            for f in self.schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def searcher(pattern: Pattern | Threshold) -> Matcher | ThresholdMatcher:
    """The matcher that starts and resumes the searches of keys."""
    return ThresholdMatcher(pattern) if isinstance(pattern, Threshold) else Matcher(pattern)


def _typed(values: tuple[Any, ...], type: pa.DataType) -> pa.Array:
    """The values as a column; a whole number that is outside BIGINT is NULL."""
    if pa.types.is_timestamp(type):
        return pa.array(values, pa.int64()).cast(type)
    try:
        return pa.array(values, type)
    except (pa.ArrowInvalid, OverflowError):
        inside = [v if not isinstance(v, int) or -_BIGINT <= v < _BIGINT else None for v in values]
        return pa.array(inside, type)
