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

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import msgspec
import pyarrow as pa

from headrace.carry.collector import collector_paused
from headrace.carry.decimals import with_decimals
from headrace.carry.ends import KeyEndRows
from headrace.carry.process import PLACE, ROWS_MAX, Marks
from headrace.carry.python_values import python_list
from headrace.carry.runs import runs
from headrace.compile.plan import MatchPlan
from headrace.core.event import ARRIVED_AT, CUT, KEY, SEQ, STATE, TIME
from headrace.core.pattern import SET_ASIDE, Pattern, Threshold
from headrace.pattern.matcher import Matcher
from headrace.pattern.search import restored
from headrace.pattern.threshold import ThresholdMatcher

NOTHING = b""  # the state of a key for which nothing is kept
_BIGINT = 1 << 63
_time = itemgetter(0)
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


@dataclass(slots=True)
class _Key:
    """A key's rows in the fold, each with the group that it came in, and the state before them."""

    name: str
    state: bytes | None = None
    state_at: tuple[int, int] = (0, 0)
    rows: list[Row] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _KeySearch:
    """The search of a key: its state, the rows in that, and the rows to be taken, in order; `late`:
    one of these belongs before the watermark of an earlier group.
    """

    key: _Key
    searched: Any
    known: list[Row]
    rows: list[Row]
    late: bool
    disordered: bool


class _Matching:
    """A single pass through sorted rows. More rows of the last key may come: it is open."""

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
        self.keys: list[_Key] = []
        self.decimals: list[int] = []  # the pattern's columns of that type

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        with collector_paused():
            self.read(batch)
            complete, self.keys = self.keys[:-1], self.keys[-1:]
            prepared = self.prepared(complete)
            more = self.search(prepared)
        while more:
            yield self.given()
            more = self.search(prepared)
        if len(self.ends) >= ROWS_MAX:
            yield self.ends.batch(self.schema)
            self.ends = KeyEndRows()

    def read(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch to those of their keys."""
        types = [batch.schema.field(name).type for name in self.plan.pattern.columns]
        self.decimals = [n for n, type in enumerate(types) if pa.types.is_decimal(type)]
        moments = python_list(batch[ARRIVED_AT].cast(pa.int64()))
        place = [moments if name == ARRIVED_AT else python_list(batch[name]) for name in PLACE]
        values = [python_list(batch[name]) for name in self.plan.pattern.columns]
        times, states, cuts = (python_list(batch[name]) for name in (TIME, STATE, CUT))
        places = list(zip(python_list(batch[SEQ]), *place, strict=True))
        tuples = zip(*values, strict=True) if values else (() for _ in times)
        rows = list(zip(times, places, tuples, strict=True))
        for name, lower, upper in runs(batch[KEY]):
            if not self.keys or name != self.keys[-1].name:
                self.keys.append(_Key(name))
            key = self.keys[-1]
            if states[lower] is not None:
                key.state, key.state_at = states[lower], (times[lower], places[lower][0])
                lower += 1
            key.rows += rows[lower:upper]
            key.cuts += cuts[lower:upper]

    def prepared(self, keys: Sequence[_Key]) -> Iterator[tuple[_KeySearch, list[int]]]:
        """Keys of which all rows are there, with their masks, computed for all of them at once."""
        searches = [found for key in keys if (found := self.key_search(key))]
        rows, lowers = list[Row](), list[int]()
        for each in searches:
            lowers.append(len(rows))
            rows += each.known
            rows += each.rows
        masks = self.matcher.masks(rows, lowers)
        uppers = [*lowers[1:], len(rows)]
        return zip(searches, map(masks.__getitem__, map(slice, lowers, uppers)), strict=True)

    def search(self, prepared: Iterator[tuple[_KeySearch, list[int]]]) -> bool:
        """Search until there are many matches, or all keys were searched."""
        with collector_paused():
            for each, masks in prepared:
                self.search_key(each, masks)
                if len(self.outputs) >= ROWS_MAX:
                    return True
        return False

    def key_search(self, key: _Key) -> _KeySearch | None:
        rows, cuts, disordered = self.placed(key)
        if key.state == SET_ASIDE:
            if disordered:  # only a search of all rows shows whether it would exceed its steps
                self.ends.add(key.name, key.state_at, SET_ASIDE, None, disordered, None)
            return None
        late = self.late(rows, cuts)
        if not key.state:
            return _KeySearch(key, None, [], rows, late, disordered)
        searched, waiting = msgspec.msgpack.decode(key.state)
        if self.decimals:
            searched, waiting = self.with_decimals(searched, waiting)
        waiting = [restored(row) for row in waiting]
        rows = sorted([*waiting, *rows]) if waiting and rows else (waiting or rows)
        return _KeySearch(key, searched, self.matcher.rows_in(searched), rows, late, disordered)

    def search_key(self, each: _KeySearch, masks: list[int]) -> None:
        known, rows, taken = len(each.known), each.rows, 0
        search = self.matcher.resume(each.searched, masks[:known])
        # On-time rows that are ripe in a group have come in it or before it.
        marks = self.marks[-1:] if each.late else self.marks
        for group, mark_us in marks:
            ripe = self.ripe(rows, mark_us)
            search.take(rows[taken:ripe], masks[known + taken : known + ripe])
            taken = ripe
            for given in search.matches(mark_us, self.ended):
                self.give(given, group)
        self.keep(each, search, rows[taken:], marks[-1][0] if each.late else None)

    def with_decimals(self, searched: Any, waiting: list[Any]) -> tuple[Any, list[Any]]:
        """A state in which the values of decimal columns are decimals again."""
        pattern, rows = self.plan.pattern, list(waiting)
        if isinstance(pattern, Pattern):
            rows += searched[0] if searched else []
        elif (
            searched and pattern.counted and pattern.columns.index(pattern.counted) in self.decimals
        ):
            searched = [(with_decimals(value), time) for value, time in searched]
        for _, _, values in rows:
            for column in self.decimals:
                values[column] = with_decimals(values[column])
        return searched, waiting

    def placed(self, key: _Key) -> tuple[list[Row], list[int], bool]:
        """The rows that have a place in what is still to be searched, and whether one has none."""
        since = self.since_us
        if since is None or not key.rows or key.rows[0][0] >= since:
            return key.rows, key.cuts, False
        pairs = [pair for pair in zip(key.rows, key.cuts, strict=True) if pair[0][0] >= since]
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
        return bisect_left(rows, mark_us, key=_time)

    def give(self, given: Any, group: int) -> None:
        time, (_, *place), values = given.row
        passed = [values[n] for n in self.passed]
        self.outputs.append((*passed, *given.measures, *place, group, time))

    def keep(self, each: _KeySearch, search: Any, waiting: list[Row], cut: int | None) -> None:
        """Output the key's state, if it has one, had one, or is out of order."""
        key, disordered = each.key, each.disordered
        if search.given_up is not None:
            time, (seq, *_), _ = search.given_up
            self.ends.add(key.name, (time, seq), SET_ASIDE, None, disordered, cut)
            return
        searched = search.state()
        empty = searched is None and not waiting
        if empty and not key.state and not disordered and cut is None:
            return
        state = NOTHING if empty else msgspec.msgpack.encode([searched, waiting])
        dues = [search.due_us(), waiting[0][0] + 1 if waiting else None]
        timer = min((due for due in dues if due is not None), default=None)
        self.ends.add(key.name, (0, 0), state, timer, disordered, cut)

    def end(self) -> Iterator[pa.RecordBatch]:
        with collector_paused():
            prepared = self.prepared(self.keys)
        while self.search(prepared):
            yield self.given()
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
