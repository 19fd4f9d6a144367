"""Every case of the suite comes out as the standard (docs/patterns.md) says, on every engine.

An engine is a function from a case to the rows that come out, in a world: `closed` (all rows are
there, and their end is known) or `open` (a stream whose watermark has passed them). To put another
engine under the same cases, add it to ENGINES.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from conformance.cases import COLUMNS, Case, cases_of
from headrace.core.errors import HeadraceError
from headrace.core.time import SECOND
from headrace.testing.reference import Reference, Timestamp, Watermark
from headrace.testing.short import ORIGIN_US

Answer = list[list[Any]]
CASES = [case for path in sorted(Path(__file__).parent.glob("*.yaml")) for case in cases_of(path)]
LONG = 100_000  # seconds after the last row of a case


def reference(case: Case, rows: Iterable[tuple[Any, ...]], *, closed: bool) -> Answer:
    events = [
        dict(zip(COLUMNS, row, strict=True)) | {"t": _moment(row[1]), "_offset": i, "_partition": 0}
        for i, row in enumerate(rows)
    ]
    found = Reference(
        {"s": COLUMNS}, {}, {"m": case.query}, watermarks={"s": Watermark("t", 0)}, closed=closed
    )
    return [list(row.values()) for row in found.answer("m", {"s": events})]


def _moment(seconds: float | None) -> Timestamp | None:
    return None if seconds is None else Timestamp(ORIGIN_US + round(seconds * SECOND))


def closed_reference(case: Case) -> Answer:
    return reference(case, case.rows, closed=True)


def open_reference(case: Case) -> Answer:
    """Every key has one more row, and the watermark has passed that too."""
    last = [(key, case.end + LONG, None, None) for key in case.keys]
    tick = [("the end", case.end + 2 * LONG, None, None)]
    return reference(case, [*case.rows, *last, *tick], closed=False)


ENGINES: dict[str, tuple[str, Callable[[Case], Answer]]] = {
    "reference, closed": ("closed", closed_reference),
    "reference, open": ("open", open_reference),
}
RUNS = [
    pytest.param(run, case, id=f"{engine}: {case.chapter}: {case.name}")
    for engine, (world, run) in ENGINES.items()
    for case in CASES
    if case.world in (None, world)
]


@pytest.mark.parametrize(("run", "case"), RUNS)
def test_the_case_comes_out_as_it_should(run: Callable[[Case], Answer], case: Case) -> None:
    if case.refused is None:
        assert sorted(map(repr, run(case))) == sorted(map(repr, case.expect))
        return
    with pytest.raises(HeadraceError) as refused:
        run(case)
    assert refused.value.condition == case.refused
    # The sentence is the reference's; other engines have words of their own.
    if run in (closed_reference, open_reference):
        assert refused.value.message == case.sentence


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.refused is None and "$" not in case.query],
    ids=lambda case: f"{case.chapter}: {case.name}",
)
def test_what_is_decided_stays_as_the_watermark_goes_on(case: Case) -> None:
    whole = Counter(map(repr, closed_reference(case)))
    times = sorted({row[1] for row in case.rows if row[1] is not None})
    before: Counter[str] = Counter()
    for time in times[:: max(1, len(times) // 3)]:
        known = [row for row in case.rows if row[1] is not None and row[1] < time]
        decided = Counter(map(repr, reference(case, [*known, _tick(time)], closed=False)))
        assert before <= decided <= whole
        before = decided


def _tick(time: float) -> tuple[Any, ...]:
    """A row at the watermark: it moves it there, and is not ripe itself."""
    return ("the watermark", time, None, None)


def test_there_are_many_cases_each_with_its_own_name() -> None:
    names = [(case.chapter, case.name) for case in CASES]
    assert len(names) >= 150
    assert len(set(names)) == len(names)
