"""The values behind exact distinct counts, compared with sets of Python."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from chance import drawn

from headrace.compile.plan import KeyPlan, ViewKind, ViewPlan
from headrace.compile.windows import SlidingWindow
from headrace.serving import counted_values
from headrace.serving.counted_values import CountedValues, by_window, packed
from headrace.serving.database import Database, Transaction
from headrace.serving.runs import (
    Layer,
    Run,
    add_runs,
    drop_runs,
    read_run,
    read_run_ends,
    runs_of,
)

from .databases import open_database
from .marks import on_every_database

pytestmark = on_every_database

HOUR = SlidingWindow(60, 60)
AD = KeyPlan("k0", "ad", "STRING", "")
WINDOW = KeyPlan("k1", "hour", "WINDOW", "", HOUR)
HOURS = ViewPlan("hours", ViewKind.MERGEABLE, "", (), keys=(AD, WINDOW))
ADS = ViewPlan("ads", ViewKind.MERGEABLE, "", (), keys=(AD,))
WHOLE = ViewPlan("whole", ViewKind.MERGEABLE, "", ())
V, COLUMN = "version", "p1"
Row = tuple[str | None, int, Any]  # ad, hour and value


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    made = open_database(tmp_path / "serving.db")
    made.take_over()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many runs and many parts of a few values."""
    monkeypatch.setattr(counted_values, "ROWS_MAX", 7)
    monkeypatch.setattr(counted_values, "CHUNK", 20)


def values(rows: Sequence[Row], type: pa.DataType) -> pa.Table:
    ads, hours, found = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {"k0": pa.array(ads, pa.string()), "k1": pa.array(hours, pa.int64()),
         "v": pa.array(found, type)},
    )  # fmt: skip


def key(plan: ViewPlan, row: Row) -> str:
    parts = dict(zip(("k0", "k1"), row[:2], strict=True))
    return msgspec.json.encode([parts[key.column] for key in plan.keys]).decode()


def build(db: Database, plan: ViewPlan, given: pa.Table) -> CountedValues:
    """Count the new values of a build, and store them."""
    with db.read() as read:
        new = CountedValues.of(plan, given).new(read, V, COLUMN)
    with db.write() as write:
        add_runs(write, V, Layer.VALUES, new.runs(), column=COLUMN)
    return new


def counts(new: CountedValues, keys: set[str]) -> dict[str, int]:
    """The number of new values of each key that has some."""
    ordered = sorted(keys)
    numbers = new.numbers(pa.array(ordered, pa.string())).to_pylist()
    return {key: n for key, n in zip(ordered, numbers, strict=True) if n}


KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "texts": (pa.string(), ["", "a", "ü", "a long text of a user", "b", "c"]),
    "integers": (pa.int64(), [0, -1, 2**62, 5]),
    "doubles": (pa.float64(), [0.0, 0.1, float("inf"), -1.5]),
    "bytes": (pa.binary(), [b"", b"a", b"\x00"]),
    "times": (pa.timestamp("us"), [0, 1, 2**40]),
}


@pytest.mark.parametrize("plan", [HOURS, ADS, WHOLE], ids=lambda plan: plan.name)
@pytest.mark.parametrize("kind", KINDS)
def test_each_value_of_a_key_is_new_once(db: Database, plan: ViewPlan, kind: str) -> None:
    rng, (type, some) = drawn("counted", plan.name, kind), KINDS[kind]
    known = defaultdict[str, set[Any]](set)
    for _ in range(4):
        rows = [random_row(rng, some) for _ in range(rng.randrange(60))]
        new = build(db, plan, values(rows, type))
        expected = Counter[str]()
        for row in rows:
            if row[2] not in known[key(plan, row)]:
                known[key(plan, row)].add(row[2])
                expected[key(plan, row)] += 1
        assert counts(new, {*known}) == expected


def random_row(rng: random.Random, some: list[Any]) -> Row:
    return rng.choice(["x", "y", "it's", None]), 60 * rng.randrange(5), rng.choice(some)


def runs_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    read: list[int] = []

    def noted(db: Transaction, id: int) -> pa.Table:
        read.append(id)
        return read_run(db, id)

    monkeypatch.setattr(counted_values, "read_run", noted)
    return read


def test_only_runs_with_a_window_of_the_build_are_read(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(ad, 60 * hour, user) for hour in range(10) for ad in "ab" for user in range(14)]
    build(db, HOURS, values(rows, pa.int64()))
    with db.read() as read:
        ends = read_run_ends(read, V, Layer.VALUES, COLUMN)
    assert len(ends) == 40
    assert all(run.first == run.last for run in ends)
    read_now = runs_read(monkeypatch)
    new = build(db, HOURS, values([("a", 180, 3), ("b", 600, 3), ("b", 180, 77)], pa.int64()))
    assert read_now == [run.id for run in ends if run.first == "180"]
    assert counts(new, {'["a",180]', '["b",600]', '["b",180]'}) == {'["b",600]': 1, '["b",180]': 1}


def test_only_runs_that_may_have_a_key_of_the_build_are_read(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(ad, 0, user) for ad in "abcdef" for user in range(7)]
    build(db, ADS, values(rows, pa.int64()))
    read_now = runs_read(monkeypatch)
    assert counts(build(db, ADS, values([("c", 0, 3), ("g", 0, 3)], pa.int64())), {'["g"]'}) == {
        '["g"]': 1
    }
    assert len(read_now) == 1


def earlier(plan: ViewPlan, rows: Sequence[Row]) -> list[Run]:
    """Runs as version 2 of the store has them: keys as plain texts, in their order."""
    keys = pa.array([key(plan, row) for row in rows], pa.string())
    return runs_of(pa.table({"_key": keys, "_value": pa.array([row[2] for row in rows])}))


def test_values_that_an_earlier_headrace_counted_are_not_new(db: Database) -> None:
    rows: Sequence[Row] = [(ad, 60 * n, n) for ad in "ab" for n in range(9)]
    with db.write() as write:
        add_runs(write, V, Layer.VALUES, earlier(HOURS, rows), column=COLUMN)
    new = build(db, HOURS, values([*rows, ("a", 60, 9)], pa.int64()))
    assert counts(new, {key(HOURS, row) for row in rows}) == {'["a",60]': 1}


@pytest.mark.parametrize("plan", [HOURS, ADS], ids=lambda plan: plan.name)
def test_packed_runs_have_the_same_values(db: Database, plan: ViewPlan) -> None:
    rows: Sequence[Row] = [("ab"[n % 2], 60 * n, n) for n in range(9)]
    for row in rows:
        build(db, plan, values([row], pa.int64()))
    with db.write() as write:
        ends = read_run_ends(write, V, Layer.VALUES, COLUMN)
        made = packed(ends, [read_run(write, run.id) for run in ends])
        drop_runs(write, [run.id for run in ends])
        add_runs(write, V, Layer.VALUES, made, column=COLUMN)
        [one] = read_run_ends(write, V, Layer.VALUES, COLUMN)
    assert (one.count, by_window(one)) == (9, plan is HOURS)
    for row in rows:
        assert not len(build(db, plan, values([row], pa.int64())).rows)
