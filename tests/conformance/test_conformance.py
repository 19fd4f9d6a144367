"""Every case of the suite comes out as the standard (docs/patterns.md) says, on every engine.

An engine is a function from a case to the rows that come out, in a world: `closed` (all rows are
there, and their end is known) or `open` (a stream whose watermark has passed them). To put another
engine under the same cases, add it to ENGINES. On Spark a case is run in one world, and every
second case in none; both are drawn. `make prove` runs each in both.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from chance import PROVE, drawn

from conformance.cases import COLUMNS, Case, cases_of
from conformance.folding import DDL, Folding, Part, Rows
from headrace.core.errors import BadDefinition, HeadraceError, UnknownColumn, Unsupported
from headrace.core.time import SECOND
from headrace.testing.reference import Reference, StreamWatermark, Timestamp
from headrace.testing.short_forms import ORIGIN_US

Answer = list[list[Any]]
CASES = [case for path in sorted(Path(__file__).parent.glob("*.yaml")) for case in cases_of(path)]
LONG = 100_000  # seconds after the last row of a case
DELAY = 5  # seconds by which rows may come out of order


def reference(case: Case, rows: Iterable[tuple[Any, ...]], *, closed: bool) -> Answer:
    events = [
        dict(zip(COLUMNS, row, strict=True)) | {"t": _moment(row[1]), "_offset": i, "_partition": 0}
        for i, row in enumerate(rows)
    ]
    found = Reference(
        {"s": COLUMNS},
        {},
        {"m": case.query},
        watermarks={"s": StreamWatermark("t", 0)},
        closed=closed,
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


@pytest.fixture(scope="module")
def analyser(spark: Any) -> Any:
    from headrace.spark.analyse import SparkAnalyser

    made = SparkAnalyser(spark)
    made.relation("s", DDL)
    return made


def worlds(case: Case) -> set[str]:
    """Those in which the case is run on Spark."""
    both = ("closed", "open") if case.refused is None else ("closed",)
    there = both if case.world is None else (case.world,)
    rng = drawn(case.chapter, case.name)
    return set(there) if PROVE else set(rng.sample(there, rng.randrange(2)))


OPEN = [case for case in CASES if "open" in worlds(case)]
CLOSED = [case for case in CASES if "closed" in worlds(case)]


def named(case: Case) -> str:
    return f"{case.chapter}: {case.name}"


def ended(case: Case) -> Rows:
    """The rows of a case in the open world: each key has one more, long after the others."""
    last = [(key, case.end + LONG, None, None) for key in case.keys]
    return [*case.rows, *last, ("the end", case.end + 2 * LONG, None, None)]


def told(case: Case, made: Answer) -> None:
    assert sorted(map(repr, made)) == sorted(map(repr, case.expect))


@pytest.mark.parametrize("case", CLOSED, ids=named)
def test_the_engine_gives_it_over_all_rows(case: Case, spark: Any, analyser: Any) -> None:
    if case.refused is None:
        folding = Folding(spark, analyser, case, case.rows, closed=True)
        told(case, folding.answer(folding.rows([Part(range(len(case.rows)))])))
        return
    with pytest.raises((BadDefinition, Unsupported, UnknownColumn)):
        Folding(spark, analyser, case, case.rows, closed=True)


@pytest.mark.parametrize("case", [c for c in OPEN if c.refused is None], ids=named)
def test_the_engine_gives_it_in_a_stream_however_that_is_cut(
    case: Case, spark: Any, analyser: Any
) -> None:
    folding = Folding(spark, analyser, case, ended(case), closed=False)
    for delay in (0, DELAY):  # rows in order, and as they may come within the watermark's delay
        came = arrivals(ended(case), delay)
        whole = folding.rows([Part(*came(0, None))])
        told(case, folding.answer(whole))
        expected = sorted(map(repr, whole.to_pylist()))
        count = len(ended(case))
        cuts = [[came(n, n + 1) for n in range(count)]]  # an epoch for each row
        cuts += [[came(0, cut), came(cut, None)] for cut in range(1, count)]  # a boundary anywhere
        for cut in cuts:
            made = folding.rows([Part(*part) for part in cut])
            assert sorted(map(repr, made.to_pylist())) == expected


def arrivals(rows: Rows, delay: float) -> Callable[[int, int | None], tuple[list[int], float]]:
    """The numbers of the rows that come between two places, and the watermark after them."""
    rng = random.Random(delay)
    times = [0.0 if row[1] is None else row[1] for row in rows]
    order = sorted(range(len(rows)), key=lambda n: (times[n] + rng.random() * delay, n))

    def came(lower: int, upper: int | None) -> tuple[list[int], float]:
        newest = max(times[n] for n in order[:upper])
        return order[lower:upper], newest - delay if upper is not None else newest

    return came


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
