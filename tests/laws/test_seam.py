"""Law 1, the seam: for every aggregate and every boundary b <= e,

    merge(batch(log[:b]), speed(log[b:e])) = batch(log[:e]) = reference(log[:e]).

Each example is a log of random events in two partitions, cut into two generations (the second
incremental), two epochs, and a last generation that covers them all. Every row of the table of
aggregates is in every view: without keys, by key with FILTER, and by key and each kind of window
whose rows are merged by another rule.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from engines import ARRIVAL_US, Compiled, HeldClock, Parts, compile_sql
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from headrace.core.aggregate import AGGREGATES, HLL_ERROR
from headrace.core.time import HOUR, iso
from headrace.testing import differences
from headrace.testing.declared import declared
from headrace.testing.decode import decoded
from headrace.testing.reference_engine import reference_of

STREAM = """
CREATE STREAM things (
  k STRING, ts TIMESTAMP, b BOOLEAN, i INT, n BIGINT, d DOUBLE, m DOUBLE, s STRING,
  WATERMARK ts DELAY OF INTERVAL 10 SECONDS);
"""
_ANY = ("i", "n", "d", "s", "b", "ts")
_ORDERS = ("n", "s", "ts", "i", "d")
# For each aggregate of the table, the calls of it that are checked. Moments are taken of numbers
# whose squares a double can hold.
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
}
_CALLS = [(name, call) for name, calls in CALLS.items() for call in calls]
ESTIMATE = 6 * HLL_ERROR
ALWAYS = {
    f"o{n}": ESTIMATE for n, (name, _) in enumerate(_CALLS) if name == "approx_count_distinct"
}
IN_SPEED = ALWAYS | {
    f"o{n}": ESTIMATE for n, (name, _) in enumerate(_CALLS) if name == "count_distinct"
}


def view(name: str, keys: str = "", when: str = "") -> str:
    items = ", ".join(f"{call}{when} AS o{n}" for n, (_, call) in enumerate(_CALLS))
    selected = f"{keys}, {items}" if keys else items
    group = f" GROUP BY {keys}" if keys else ""
    return f"CREATE VIEW {name} AS SELECT {selected} FROM things{group};\n"


DEFINITIONS = (
    STREAM
    + view("whole")
    + view("keyed", "k", " FILTER (WHERE i > 0)")
    + view("windowed", "k, window(ts, '1 minute')")
    + view("slid", "k, window(ts, '1 minute', '25 seconds', '-7 seconds')")
    + view("sessions", "k, session_window(ts, '20 seconds')")
)
VIEWS = ("whole", "keyed", "windowed", "slid", "sessions")
# Their rows are put together when read, so no number of distinct values is exact in them.
REGROUPED = {"slid", "sessions"}

INTS = st.integers(-3, 3) | st.sampled_from([-(2**31), 2**31 - 1])
BIGINTS = (
    st.integers(-5, 5) | st.integers(2**63 - 3, 2**63 - 1) | st.integers(-(2**63), -(2**63) + 2)
)
# Of one sign, so that a sum does not depend on the order by more than rounding, and far from
# overflow.
DOUBLES = st.sampled_from([0.0, -0.0, 5e-324, 0.1, 1.0, 1e300]) | st.floats(0, 1e300)
MOMENTS = st.integers(-40, 40).map(lambda eighths: eighths / 8) | st.sampled_from(
    [1e6, 1e120, -1e120]
)
TEXTS = st.sampled_from(["", "a", "B", "é", "ß", "日本", "😀", "\uffff", "a'b\"c\\"]) | st.text(
    max_size=3
)
# Minutes around the arrival, some of them late, and some so far ahead that they move no watermark.
TIMES = st.integers(-180, 180).map(lambda second: ARRIVAL_US + second * 1_000_000 + second % 7)
FAR_TIMES = st.sampled_from([-1, ARRIVAL_US + 2 * HOUR, ARRIVAL_US - 90 * 24 * HOUR])
EVENT = st.fixed_dictionaries(
    {},
    optional={
        "k": st.sampled_from(["a", "b", "ü", None]),
        "ts": (TIMES | FAR_TIMES).map(iso),
        "b": st.booleans(),
        "i": INTS,
        "n": BIGINTS,
        "d": DOUBLES,
        "m": MOMENTS,
        "s": TEXTS,
    },
)
RECORDS = st.lists(
    st.tuples(st.integers(0, 1), EVENT.map(lambda event: json.dumps(event).encode())), max_size=20
)


def test_every_aggregate_of_the_table_is_called() -> None:
    assert set(CALLS) == set(AGGREGATES)


@pytest.fixture(scope="module")
def compiled(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compile_sql(spark, tmp_path_factory.mktemp("seam"), DEFINITIONS, partitions=2)


class Log:
    """What was appended, for the reference, which needs no log."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.declared = declared(DEFINITIONS)
        self.events: list[dict[str, Any]] = []
        self.ends = [0, 0]

    def append(self, records: list[tuple[int, bytes]]) -> None:
        for partition, record in records:
            self.parts.topics["things"].append(partition, [record], bytes(1)).result()
            place = {"_partition": partition, "_offset": self.ends[partition]}
            self.events.append(decoded(record, self.declared.streams[0].columns) | place)
            self.ends[partition] += 1

    def expected(self, view: str) -> list[dict[str, Any]]:
        return reference_of(self.declared, {}).answer(view, {"things": self.events})

    def differences(self, approximate: dict[str, float]) -> list[str]:
        return [
            f"{view}: {sentence}"
            for view in VIEWS
            for sentence in differences(
                self.expected(view),
                self.parts.reader.view(view).rows,
                approximate | (IN_SPEED if view in REGROUPED else {}),
            )
        ]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.timeout(900)
@settings(
    max_examples=8,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking would take an hour of Spark
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@example(  # an empty text is a value, and 0.0 is one with -0.0, also for a sketch
    pieces=([(0, b'{"s": "a"}')], [], [(1, b'{"s": "", "d": -0.0}')], [(0, b'{"d": 0.0}')]),
    whole=True,
)
@given(pieces=st.tuples(RECORDS, RECORDS, RECORDS, RECORDS), whole=st.booleans())
def test_batch_and_speed_together_are_batch_alone(
    compiled: Compiled, folder: Path, pieces: tuple[Any, ...], whole: bool
) -> None:
    state = folder / "state"
    shutil.rmtree(state, ignore_errors=True)
    parts = Parts(compiled, state, clock=HeldClock())
    try:
        log = Log(parts)
        for piece in pieces[:2]:
            log.append(piece)
            parts.catch_up()
        assert log.differences(ALWAYS) == [], "after two generations"
        for piece in pieces[2:]:
            log.append(piece)
            if epoch := parts.epoch("things"):
                assert parts.store.commit_epoch(epoch)
        assert log.differences(IN_SPEED) == [], "after two epochs"
        parts.archive("things")
        made = parts.build("things", full=frozenset(VIEWS if whole else ()))
        assert [audit for audit in (made.audits if made else ()) if audit.differences] == []
        assert log.differences(ALWAYS) == [], "after the last generation"
    finally:
        parts.close()
