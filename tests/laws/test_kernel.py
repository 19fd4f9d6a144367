"""The vectorised kernel gives the partials that Spark SQL gives: for every view that takes it and
every log,

    kernel(view, records) = spark(view.partial_sql, events of the records),

and so of the values behind exact distinct counts.

Each call of an aggregate is a view of its own, with and without FILTER, by key and by each kind of
window, because one function that is not certified leaves the whole view to Spark. A sketch is
compared by what it estimates: its bytes may differ.
"""

from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa
import pytest
from chance import examples
from engines import ARRIVAL_US, Compiled, compile_sql, frame_of
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from headrace.compile.plan import ViewPlan
from headrace.core.aggregate import Merge
from headrace.core.event import STATUS
from headrace.kernel.partials import KernelJob, compute_partials
from headrace.log.block import Block
from headrace.master.decoding import decoder_of
from headrace.serving.states import sketches
from tests.laws.test_seam import CALLS, SEED, STREAM, TYPED, random_events

TABLE = "CREATE TABLE labels (k STRING, label STRING, at TIMESTAMP) USING csv LOCATION 'l.csv';\n"
LABELS = b"k,label,at\na,first,2026-01-01T00:00:00Z\nb,,\n"
GROUPS = {
    "whole": "",
    "keyed": "k, b, ts, day, money",
    "windowed": "k, window(ts, '1 minute')",
    "slid": "i, window(ts, '1 minute', '25 seconds', '-7 seconds')",
    "sessions": "k, session_window(ts, '20 seconds')",
}
# Columns of which distinct values are counted exactly.
DISTINCT = ("s", "n", "i", "b", "ts", "day")
# Aggregates whose lifts are certified, at least for some types of their arguments.
VECTORISED = {
    "count", "sum", "avg", "min", "max", "var_samp", "var_pop", "stddev_samp", "stddev_pop",
    "bool_and", "bool_or", "max_by", "min_by", "first", "last", "count_distinct",
    "approx_count_distinct", "histogram",
}  # fmt: skip
OUTSIDE = "a computed date or time, which may lie outside the years 1 to 9999, is not certified"
# What is computed in Spark SQL, and why.
REFUSED = {
    "SELECT d, count(*) AS n FROM things GROUP BY d": "its key 'd' is DOUBLE",
    "SELECT count(*) AS n FROM things WHERE ts + INTERVAL 1 DAY > ts": OUTSIDE,
    "SELECT max(date_add(day, i)) AS d FROM things": OUTSIDE,
    "SELECT add_months(day, 1) AS d, max(i) AS i FROM things GROUP BY add_months(day, 1)": OUTSIDE,
    "SELECT min(timestamp_millis(n)) AS t FROM things": OUTSIDE,
    "SELECT count(*) AS n FROM things WHERE CAST(s AS DATE) IS NOT NULL": OUTSIDE,
    "SELECT window(ts + INTERVAL 1 HOUR, '1 day') AS w, count(*) AS n FROM things "
    "GROUP BY window(ts + INTERVAL 1 HOUR, '1 day')": OUTSIDE,
    "SELECT floor(log10(n) * 10) AS k, count(*) AS n FROM things GROUP BY floor(log10(n) * 10)":
        "what the last digits of 'log10' decide is not certified",
    "SELECT count(*) AS n FROM things WHERE pow(d, 0.3) >= 2":
        "what the last digits of 'pow' decide is not certified",
    "SELECT sum(CAST(money AS DECIMAL(38,38))) AS s FROM things":
        "a sum of DECIMAL(38,38), which may overflow, is not certified",
}  # fmt: skip


def definitions() -> str:
    """A view for each call; the calls are shared out to the ways of grouping."""
    calls = [call for table in (CALLS, TYPED) for calls in table.values() for call in calls]
    views = []
    for number, call in enumerate(calls):
        name, keys = list(GROUPS.items())[number % len(GROUPS)]
        call = call if number % 2 else f"{call} FILTER (WHERE n > 0 OR s <> '')"
        items = ", ".join(filter(None, (keys, f"{call} AS o")))
        group = f" GROUP BY {keys}" if keys else ""
        views.append(f"CREATE VIEW {name}_{number} AS SELECT {items} FROM things{group};")
    views.append(
        "CREATE VIEW joined AS SELECT label, at, count(*) AS n FROM things t JOIN labels l "
        "ON t.k = l.k WHERE upper(s) <> 'B' AND s NOT LIKE 'b%' GROUP BY label, at;"
    )
    views += [
        f"CREATE VIEW distinct_{name} AS SELECT k, window(ts, '1 minute'), "
        f"count(DISTINCT {name}) AS o, count(DISTINCT n) FILTER (WHERE b) AS p FROM things "
        "GROUP BY k, window(ts, '1 minute');"
        for name in DISTINCT
    ]
    views += [f"CREATE VIEW refused_{n} AS {query};" for n, query in enumerate(REFUSED)]
    views.append("CREATE VIEW logarithms AS SELECT k, sum(ln(n)) AS l FROM things GROUP BY k;")
    return STREAM + TABLE + "\n".join(views)


@pytest.fixture(scope="module")
def compiled(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    folder = tmp_path_factory.mktemp("kernel")
    return compile_sql(spark, folder, definitions(), {"l.csv": LABELS}, partitions=1)


def test_the_aggregates_that_are_certified_take_the_kernel(compiled: Compiled) -> None:
    """And the others say which function is not."""
    taken = {view.name for view in compiled.plan.views if view.kernel.sql}
    refused = {view.name: view.kernel.refused for view in compiled.plan.views}
    assert not {name for name, reason in refused.items() if bool(reason) == (name in taken)}
    names = [name for table in (CALLS, TYPED) for name, calls in table.items() for _ in calls]
    distinct = {f"distinct_{name}" for name in DISTINCT}
    assert distinct <= taken
    others = {"joined", "logarithms"}
    assert others <= taken
    numbers = {int(name.rpartition("_")[2]) for name in taken - others - distinct}
    assert {names[number] for number in numbers} == VECTORISED
    assert [refused[f"refused_{n}"] for n in range(len(REFUSED))] == list(REFUSED.values())
    assert any("is not certified" in reason for reason in refused.values())


@pytest.mark.timeout(3_600)
@settings(
    max_examples=examples(2, 20),
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
@given(events=st.builds(random_events, SEED, st.integers(30, 80)))
def test_the_kernel_gives_what_spark_gives(
    compiled: Compiled, events: list[dict[str, Any]]
) -> None:
    [stream] = compiled.plan.streams
    views = [view for view in compiled.plan.views if view.kernel.sql]
    # A mean of huge numbers that cancel each other depends on their order.
    sized = [{**event, "m": math.fmod(event.get("m", 0.0), 1e6)} for event in events]
    lines = [json.dumps({"x": 0} | event).encode() for event in [*sized, {"i": "no number"}]]
    block = Block.of(0, ARRIVAL_US, lines, bytes(len(lines)))
    records = decoder_of(stream).decode([block], 0, None, raw=stream.raw).table
    tables = {"labels": compiled.speed.table("labels").toArrow()}
    counted = [
        (view, partial.columns[0], view.values_sql(partial), sql)
        for view in views
        for partial, (_, sql) in zip(view.counted, view.kernel.values, strict=True)
    ]
    queries = {view.name: view.kernel.sql for view in views}
    queries |= {f"{view.name} {column}": sql for view, column, _, sql in counted}
    job = KernelJob("things", queries, tables)
    found = compute_partials(job, decoder_of(stream).watermark, 0, records)
    frame = frame_of(compiled.speed, stream, records).where(f"{STATUS} = 0").cache()
    frame.createOrReplaceTempView("things")
    wrong = {}
    for view in views:
        expected = compiled.speed.sql(view.partial_sql).toArrow()
        if differences := _differences(view, expected, found.rows[view.name], len(view.keys)):
            wrong[view.name] = (view.definition, differences)
    for view, column, sql, _ in counted:
        name = f"{view.name} {column}"
        both = _values(compiled.speed.sql(sql).toArrow()), _values(found.rows[name])
        # A key has many values, which are part of what identifies a row.
        if differences := _differences(view, *both, len(view.keys) + 1):
            wrong[name] = (view.definition, differences)
    frame.unpersist()
    assert len(counted) >= 2 * len(DISTINCT)
    assert wrong == {}
    assert found.counts[0] + found.counts[3] == len(lines)


def _values(table: pa.Table) -> pa.Table:
    """As the store keeps them: times as microseconds."""
    if not pa.types.is_timestamp(table["v"].type):
        return table
    place = table.schema.get_field_index("v")
    return table.set_column(place, "v", table["v"].cast(pa.int64()))


def _differences(
    view: ViewPlan, expected: pa.Table, found: pa.Table, keys: int
) -> list[tuple[Any, Any]]:
    """The rows of the two that are not equal, in the order of their first `keys` columns."""
    sketched = {c for p in view.partials if p.merge == Merge.HLL for c in p.columns}
    both = [
        sorted(_rows(table, sketched), key=lambda row: repr(row[:keys]))
        for table in (expected, found)
    ]
    if len(both[0]) != len(both[1]):
        return [(len(both[0]), len(both[1]))]
    return [(a, b) for a, b in zip(*both, strict=True) if not all(map(_equal, a, b))]


def _rows(table: pa.Table, sketched: set[str]) -> list[tuple[Any, ...]]:
    columns = [
        [sketches.count_hll(v) if v else 0 for v in table[name].to_pylist()]
        if name in sketched
        else table[name].to_pylist()
        for name in table.column_names
    ]
    return list(zip(*columns, strict=True))


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == pytest.approx(b, rel=1e-9, abs=1e-12, nan_ok=True)
    return bool(a == b) and type(a) is type(b)
