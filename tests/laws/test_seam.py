"""Law 1, the seam: for every aggregate and every boundary b <= e,

    merge(batch(log[:b]), speed(log[b:e])) = batch(log[:e]) = reference(log[:e]).

Each example is some logs of random events in two partitions, cut into two generations (the second
incremental), two epochs, and a last generation that covers them all. The logs share Spark's jobs,
whose number is what an example costs: `x` says whose event it is, and all views but the one
without keys group by it. Every row of the table of aggregates is in every view: without keys, by
key with FILTER, and by key and each kind of window whose rows are merged by another rule. Ten logs
for each part of the aggregates; 500 in `make prove`, where a failing example is shrunk.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from chance import PROVE, drawn, examples
from engines import ARRIVAL_US, Compiled, HeldClock, Parts, compile_sql
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from headrace.core.aggregate import AGGREGATES, HLL_ERROR
from headrace.core.aggregate.sketches import KLL_K
from headrace.core.time import HOUR, iso
from headrace.testing import differences
from headrace.testing.declarations import read_declarations
from headrace.testing.decode import decoded
from headrace.testing.reference_engine import reference_of

STREAM = """
CREATE STREAM things (
  x INT, k STRING, ts TIMESTAMP, b BOOLEAN, i INT, n BIGINT, d DOUBLE, m DOUBLE, e DOUBLE, g DOUBLE,
  s STRING, tiny TINYINT, small SMALLINT, single FLOAT, money DECIMAL(9,2), bytes BINARY,
  local TIMESTAMP_NTZ, day DATE, v VARIANT, tags ARRAY<STRING>, labels MAP<STRING, DOUBLE>,
  o STRUCT<a: DECIMAL(4,1), b: ARRAY<TIMESTAMP>>,
  WATERMARK ts DELAY OF INTERVAL 10 SECONDS);
"""
_ANY = ("i", "n", "d", "s", "b", "ts")
_ORDERS = ("n", "s", "ts", "i", "d")
# For each aggregate of the table, the calls of it that are checked. Moments are taken of numbers
# whose squares a double can hold, percentiles of numbers that are doubles, and a sketch of
# frequencies of columns with few values, whose counters do not meet.
CALLS: dict[str, list[str]] = {
    "count": ["count(*)", "count(n)", "count(s)"],
    "sum": ["sum(i)", "sum(n)", "sum(d)"],
    "avg": ["avg(i)", "avg(n)", "avg(d)"],
    "min": [f"min({column})" for column in _ANY],
    "max": [f"max({column})" for column in _ANY],
    "var_samp": ["var_samp(m)", "var_samp(i)"],
    "var_pop": ["var_pop(m)", "var_pop(i)"],
    "stddev_samp": ["stddev_samp(m)", "stddev(i)"],
    "stddev_pop": ["stddev_pop(m)", "stddev_pop(i)"],
    "bool_and": ["bool_and(b)", "every(b)"],
    "bool_or": ["bool_or(b)", "some(b)"],
    "max_by": [f"max_by({x}, {y})" for x, y in zip(_ANY, _ORDERS, strict=False)],
    "min_by": [f"min_by({x}, {y})" for x, y in zip(_ANY, _ORDERS, strict=False)],
    "count_distinct": ["count(DISTINCT s)", "count(DISTINCT d)"],
    "approx_count_distinct": ["approx_count_distinct(n)", "approx_count_distinct(d)"],
    "first": [f"first({column})" for column in _ANY],
    "last": [f"last_value({column})" for column in _ANY],
    "percentile_approx": ["percentile_approx(i, 0.5)", "approx_percentile(d, 0.9)"],
    "median": ["median(i)", "median(m)"],
    "approx_top_k": [f"approx_top_k({column}, 2)" for column in _ANY],
    "count_min": ["count_min(i, 3)", "count_min(n, -5)"],
    "collect_list": [f"collect_list({column}, 3)" for column in _ANY],
    "collect_set": [f"collect_set({column}, 3)" for column in _ANY] + ["collect_set(s)"],
    "histogram": ["histogram(i, -2, 2, 4)", "histogram(m, -5.5, 5, 3)", "histogram(d, 0, 1, 2)"],
    "bitmap_count_distinct": ["bitmap_count_distinct(i)", "bitmap_count_distinct(n)"],
    "covar_samp": ["covar_samp(e, g)"],
    "covar_pop": ["covar_pop(e, g)"],
    "corr": ["corr(e, g)", "corr(e, e)"],
    "skewness": ["skewness(e)"],
    "kurtosis": ["kurtosis(e)"],
}
# Types beyond those: of each kind of aggregate that keeps a value, a call for each type.
_SCALARS = ("tiny", "small", "single", "money", "bytes", "local", "day")
_NESTED = ("tags", "labels", "o")
TYPED: dict[str, list[str]] = {
    "min": [f"min({column})" for column in _SCALARS],
    "max": [f"max({column})" for column in _SCALARS],
    "sum": ["sum(tiny)", "sum(small)", "sum(money)", "sum(CAST(n AS DECIMAL(38,18)))"],
    "avg": ["avg(tiny)", "avg(money)", "avg(CAST(n AS DECIMAL(30,8)))"],
    "first": [f"first({column})" for column in (*_SCALARS, *_NESTED)],
    "last": [f"last({column})" for column in (*_NESTED, "v", "money")],
    "max_by": [
        "max_by(tags, money)",
        "max_by(labels, bytes)",
        "max_by(o, local)",
        "max_by(v, tiny)",
        "max_by(money, single)",
    ],
    "min_by": ["min_by(o, day)", "min_by(v, money)", "min_by(bytes, small)"],
    "count_distinct": [f"count(DISTINCT {c})" for c in ("single", "money", "bytes", "tags", "o")],
    "collect_list": [f"collect_list({column}, 3)" for column in (*_SCALARS, *_NESTED)],
    "collect_set": [f"collect_set({column}, 3)" for column in (*_SCALARS, "tags", "o")],
    "approx_top_k": ["approx_top_k(money, 2)", "approx_top_k(local, 2)"],
}
TYPES = "every other type"
# In three parts: a SELECT of a hundred aggregates is more than Spark likes to compile.
HALVES = {
    "plain columns and distinct values": [(n, c) for n in list(CALLS)[:15] for c in CALLS[n]],
    "events, sketches, lists and shapes": [(n, c) for n in list(CALLS)[15:] for c in CALLS[n]],
    TYPES: [(name, call) for name, calls in TYPED.items() for call in calls],
}
ESTIMATE = 6 * HLL_ERROR


def calls_of(half: str) -> list[tuple[str, str]]:
    return HALVES[half]


def rough(half: str, *names: str) -> dict[str, float]:
    return {f"o{n}": ESTIMATE for n, (name, _) in enumerate(calls_of(half)) if name in names}


def view(half: str, name: str, keys: str = "", when: str = "") -> str:
    items = ", ".join(f"{call}{when} AS o{n}" for n, (_, call) in enumerate(calls_of(half)))
    selected = f"{keys}, {items}" if keys else items
    group = f" GROUP BY {keys}" if keys else ""
    return f"CREATE VIEW {name} AS SELECT {selected} FROM things{group};\n"


def definitions(half: str) -> str:
    return (
        STREAM
        + view(half, "whole")
        + view(half, "keyed", "x, k", " FILTER (WHERE i > 0)")
        + view(half, "windowed", "x, k, window(ts, '1 minute')")
        + view(half, "slid", "x, k, window(ts, '1 minute', '25 seconds', '-7 seconds')")
        + view(half, "sessions", "x, k, session_window(ts, '20 seconds')")
        + (KEYED if half == TYPES else "")
    )


# A view for each type as a key.
KEYS = (*_SCALARS, *_NESTED)
KEYED = "".join(
    f"CREATE VIEW by_{key} AS SELECT x, {key}, count(*) AS n, sum(e) AS e FROM things "
    f"GROUP BY x, {key};\n"
    for key in KEYS
)
VIEWS = ("whole", "keyed", "windowed", "slid", "sessions")


def views_of(half: str) -> tuple[str, ...]:
    return (*VIEWS, *(f"by_{key}" for key in KEYS)) if half == TYPES else VIEWS


# Their rows are put together when read, so no number of distinct values is exact in them.
REGROUPED = {"slid", "sessions"}

Make = Callable[[Random], Any]
Piece = list[tuple[int, dict[str, Any]]]  # events with their partitions


def integer(lower: int, upper: int) -> Make:
    return lambda rng: rng.randint(lower, upper)


def one_of(*values: Any) -> Make:
    return lambda rng: rng.choice(values)


def either(*makes: Make) -> Make:
    return lambda rng: rng.choice(makes)(rng)


def lists(make: Make) -> Make:
    return lambda rng: [make(rng) for _ in range(rng.randrange(3))]


def maps(make: Make) -> Make:
    return lambda rng: {name(rng): make(rng) for _ in range(rng.randrange(3))}


def fields(rng: Random, makes: dict[str, Make]) -> dict[str, Any]:
    """Some of the fields: any may be missing."""
    present = rng.random() ** 0.5
    return {name: make(rng) for name, make in makes.items() if rng.random() < present}


def text(rng: Random) -> str:
    """Of all planes of Unicode, without surrogates."""
    return "".join(
        chr(either(integer(0, 0x7F), integer(0x80, 0xD7FF), integer(0xE000, 0x10FFFF))(rng))
        for _ in range(rng.randrange(4))
    )


def event_time(rng: Random) -> int:
    """Minutes around the arrival, some of them late."""
    second = rng.randint(-180, 180)
    return ARRIVAL_US + second * 1_000_000 + second % 7


def eighth(rng: Random) -> float:
    return rng.randint(-40, 40) / 8


def local_time(rng: Random) -> str:
    return iso(event_time(rng)).removesuffix("Z")


def variant(rng: Random) -> Any:
    flat = either(one_of(None, "", "ü"), integer(-3, 3))
    return either(flat, flat, lists(flat), maps(either(flat, lists(flat))))(rng)


def members(rng: Random) -> dict[str, Any]:
    times = one_of(None, iso(event_time(rng)), iso(event_time(rng)))
    return fields(rng, {"a": one_of(None, "-999.9", "0", "0.1"), "b": either(none, lists(times))})


none = one_of(None)
name = one_of("a", "b", "é", "a'b\"c\\")
# Of one sign, so that a sum does not depend on the order by more than rounding, and far from
# overflow.
double = either(
    one_of(0.0, -0.0, 5e-324, 0.1, 1.0, 1e300),
    lambda rng: rng.random() * 10.0 ** rng.randint(-300, 300),
)
# So far from the arrival that they move no watermark.
far_time = one_of(-1, ARRIVAL_US + 2 * HOUR, ARRIVAL_US - 90 * 24 * HOUR)
COLUMNS: dict[str, Make] = {
    "k": one_of("a", "b", "ü", None),
    "ts": lambda rng: iso(either(event_time, event_time, event_time, far_time)(rng)),
    "b": one_of(False, True),
    "i": either(integer(-3, 3), one_of(-(2**31), 2**31 - 1)),
    "n": either(integer(-5, 5), integer(2**63 - 3, 2**63 - 1), integer(-(2**63), -(2**63) + 2)),
    "d": double,
    "m": either(eighth, one_of(1e6, 1e120, -1e120)),
    "e": eighth,
    "g": eighth,
    "s": either(one_of("", "a", "B", "é", "ß", "日本", "😀", "\uffff", "a'b\"c\\"), text),
    "tiny": either(integer(-2, 2), one_of(-128, 127)),
    "small": either(integer(-2, 2), one_of(-(2**15), 2**15 - 1)),
    "single": one_of(0.0, -0.0, 0.1, 1.5, 3e38),
    "money": one_of("0", "-0.01", "0.01", "-9999999.99", "9999999.99", "5"),
    "bytes": one_of("", "AA==", "AP8=", "AQ==", "/w=="),
    "local": local_time,
    "day": one_of("0001-01-01", "1969-12-31", "2026-11-15", "9999-12-31"),
    "v": variant,
    "tags": lists(either(none, name)),
    "labels": maps(either(none, double)),
    "o": members,
}


def random_events(seed: int, count: int) -> list[dict[str, Any]]:
    rng = Random(seed)
    return [fields(rng, COLUMNS) for _ in range(count)]


def random_log(seed: int, sizes: tuple[int, ...]) -> tuple[Piece, ...]:
    """A log in pieces of these sizes. Events are of a seed and not of Hypothesis, which gives up
    on examples of so many choices; it looks for a failure with fewer events.
    """
    rng = Random(seed)
    return tuple([(rng.randrange(2), fields(rng, COLUMNS)) for _ in range(size)] for size in sizes)


SEED = st.integers(0, 2**64 - 1)
SIZE = st.integers(0, 20)
# How many logs share the jobs of an example; each is cut into four pieces.
LOGS = examples(10, 50)
LOG = st.builds(random_log, SEED, st.tuples(SIZE, SIZE, SIZE, SIZE))
# An empty text is a value, and 0.0 is one with -0.0, also for a sketch.
SMALLEST = ([(0, {"s": "a"})], [], [(1, {"s": "", "d": -0.0})], [(0, {"d": 0.0})])


def drawn_logs() -> list[tuple[Piece, ...]]:
    """The first example that Hypothesis makes is the smallest, of empty logs, so where there is to
    be one it is drawn here.
    """
    rng = drawn("seam")
    sizes = [tuple(rng.randint(0, 20) for _ in range(4)) for _ in range(LOGS - 1)]
    return [SMALLEST, *(random_log(rng.getrandbits(64), each) for each in sizes)]


def test_every_aggregate_of_the_table_is_called() -> None:
    assert set(CALLS) == set(AGGREGATES)


@pytest.fixture(scope="module", params=HALVES)
def half(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def compiled(half: str, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compile_sql(spark, tmp_path_factory.mktemp("seam"), definitions(half), partitions=2)


def together(logs: list[tuple[Piece, ...]]) -> list[list[tuple[int, bytes]]]:
    """The pieces of all logs as pieces of one, whose records say of which log they are."""
    return [
        [
            (partition, json.dumps({"x": number} | event).encode())
            for number, piece in enumerate(pieces)
            for partition, event in piece
        ]
        for pieces in zip(*logs, strict=True)
    ]


class Log:
    """What was appended, for the reference, which needs no log."""

    def __init__(self, parts: Parts, half: str) -> None:
        self.parts, self.views = parts, views_of(half)
        self.declared = read_declarations(definitions(half))
        self.events: list[dict[str, Any]] = []
        self.ends = [0, 0]
        self.in_speed = rough(half, "approx_count_distinct", "count_distinct")
        self.ranked = rough(half, "percentile_approx", "median").keys()

    def append(self, records: list[tuple[int, bytes]]) -> None:
        for partition, record in records:
            self.parts.topics["things"].append(partition, [record], bytes(1)).result()
            place = {"_partition": partition, "_offset": self.ends[partition]}
            self.events.append(decoded(record, self.declared.streams[0].columns) | place)
            self.ends[partition] += 1

    def expected(self, view: str) -> list[dict[str, Any]]:
        return reference_of(self.declared, {}).answer(view, {"things": self.events})

    def compared(self, view: str, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The rows without percentiles of so many values that a sketch estimates their rank, and a
        neighbour in rank may be any number away.
        """
        left_out = self.ranked if view == "whole" and len(self.events) > KLL_K else ()
        return [{name: row[name] for name in row if name not in left_out} for row in rows]

    def differences(self, approximate: dict[str, float]) -> list[str]:
        return [
            f"{view}: {sentence}"
            for view in self.views
            for sentence in differences(
                self.compared(view, self.expected(view)),
                self.compared(view, self.parts.reader.view(view).rows),
                approximate | (self.in_speed if view in REGROUPED else {}),
            )
        ]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.timeout(3600 if PROVE else 900)
@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # of a log that fails
@settings(
    max_examples=examples(1, 500 // LOGS),
    # Shrinking would take an hour of Spark.
    phases=tuple(Phase) if PROVE else (Phase.explicit,),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@example(logs=drawn_logs(), whole=True)
@given(logs=st.lists(LOG, min_size=LOGS, max_size=LOGS), whole=st.booleans())
def test_batch_and_speed_together_are_batch_alone(
    half: str, compiled: Compiled, folder: Path, logs: list[tuple[Piece, ...]], whole: bool
) -> None:
    state = folder / "state"
    shutil.rmtree(state, ignore_errors=True)
    parts = Parts(compiled, state, clock=HeldClock())
    try:
        log = Log(parts, half)
        always = rough(half, "approx_count_distinct")
        pieces = together(logs)
        for piece in pieces[:2]:
            log.append(piece)
            parts.catch_up()
        assert log.differences(always) == [], "after two generations"
        for piece in pieces[2:]:
            log.append(piece)
            if epoch := parts.epoch("things"):
                assert parts.store.commit_epoch(epoch)
        assert log.differences(log.in_speed) == [], "after two epochs"
        parts.archive("things")
        made = parts.build("things", full=frozenset(log.views if whole else ()))
        assert [audit for audit in (made.audits if made else ()) if audit.differences] == []
        assert log.differences(always) == [], "after the last generation"
    finally:
        parts.close()
