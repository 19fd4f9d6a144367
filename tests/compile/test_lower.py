"""Storage forms, partials and finishes: what a view keeps, chosen by the types that Spark tells.

The analyser is handed in, so here it is a table: SQL expression -> Spark's type.
"""

from __future__ import annotations

import pytest

from headrace.compile.carry import window_fold
from headrace.compile.lower import (
    MapStep,
    lower_finish,
    lower_map,
    lower_output,
    lower_partials,
)
from headrace.compile.plan import WINDOW, CallPlan, OutputPlan, PartialPlan
from headrace.compile.split import ViewParts, split
from headrace.compile.windows import SlidingWindow
from headrace.core.aggregate import Approximation
from headrace.core.errors import Unsupported
from headrace.core.origin import Origin
from headrace.core.time import HOUR
from headrace.define.dialect import parse_query

AT = Origin("shop.sql", 3)
TYPES = {
    "user": "string", "url": "string", "ms": "int", "bytes": "bigint", "price": "double",
    "cents": "decimal(10,2)", "ok": "boolean", "tags": "array<string>", "day": "date",
    "ts": "timestamp", "m": "map<string,int>", "1": "int", "NULL": "void", "tiny": "tinyint",
    "single": "float", "local": "timestamp_ntz", "body": "binary", "times": "array<timestamp>",
    "v": "variant", "span": "interval day to second", "vs": "array<variant>",
}  # fmt: skip


def analyse(sql: str, origin: Origin) -> list[tuple[str, str]]:
    items = parse_query(sql, origin).selects
    return [(item.alias, TYPES[item.this.sql(dialect="spark")]) for item in items]


def lowered(sql: str) -> tuple[ViewParts, MapStep]:
    query = parse_query(sql, AT)
    parts = split(query, set(TYPES), AT, str.__eq__)
    place, time = "clicks._offset * 65536 + clicks._partition", "unix_micros(clicks.ts)"
    fold = window_fold("_carried_v", "ts", "clicks")
    return parts, lower_map(parts, query, query, place, time, analyse, AT, cut=None, fold=fold)


def partials(call: str) -> tuple[list[PartialPlan], list[CallPlan], str]:
    parts, mapped = lowered(f"SELECT {call} AS x FROM clicks")
    found, calls = lower_partials(parts, mapped)
    return found, calls, mapped.lowered[0].type.name


@pytest.mark.parametrize(
    ("column", "stored", "type"),
    [
        ("url", "url", "STRING"),
        ("ms", "ms", "INT"),
        ("bytes", "bytes", "BIGINT"),
        ("tiny", "tiny", "TINYINT"),
        ("price", "(price + 0.0D)", "DOUBLE"),
        ("single", "(cast(single as double) + 0.0D)", "FLOAT"),
        (
            "cents",
            "CASE WHEN cents < 0 THEN translate(to_char(cents, 'S00000000.00'), '0123456789', "
            "'9876543210') ELSE substring(to_char(cents, 'S00000000.00'), 2) END",
            "DECIMAL(10,2)",
        ),
        ("ok", "cast(ok as int)", "BOOLEAN"),
        ("day", "unix_date(day)", "DATE"),
        ("ts", "unix_micros(ts)", "TIMESTAMP"),
        ("local", "unix_micros(cast(local as timestamp))", "TIMESTAMP_NTZ"),
        ("body", "body", "BINARY"),
        ("tags", "to_json(tags, map('ignoreNullFields', 'false'))", "ARRAY<STRING>"),
        (
            "times",
            "to_json(transform(times, v0 -> unix_micros(v0)), map('ignoreNullFields', 'false'))",
            "ARRAY<TIMESTAMP>",
        ),
    ],
)
def test_key_is_kept_in_storage_form(column: str, stored: str, type: str) -> None:
    _, mapped = lowered(f"SELECT {column}, count(*) AS n FROM clicks GROUP BY {column}")
    (key,) = mapped.keys
    assert (key.column, key.name, key.type, key.sql) == ("k0", column, type, stored)
    assert mapped.sql == f"SELECT {stored} AS k0, 1 AS a0 FROM clicks"


def test_map_keeps_the_source_its_joins_and_its_condition_and_nothing_after() -> None:
    _, mapped = lowered(
        "SELECT url, sum(ms) AS s FROM clicks JOIN pages ON clicks.a = pages.a WHERE ok "
        "GROUP BY url HAVING sum(ms) > 1 ORDER BY s LIMIT 3"
    )
    assert mapped.sql == (
        "SELECT url AS k0, ms AS a0 FROM clicks JOIN pages ON clicks.a = pages.a WHERE ok"
    )


def test_window_is_kept_by_its_start_and_without_time_there_is_none() -> None:
    _, mapped = lowered(
        "SELECT window(ts, '1 hour') AS w, count(*) AS n FROM clicks GROUP BY window(ts, '1 hour')"
    )
    (key,) = mapped.keys
    assert (key.name, key.type, key.window) == ("w", WINDOW, SlidingWindow(HOUR, HOUR))
    assert key.sql == "(unix_micros(ts) - pmod(unix_micros(ts), 3600000000))"
    assert mapped.sql.endswith(") WHERE k0 IS NOT NULL")


def test_argument_and_condition_are_computed_once() -> None:
    parts, mapped = lowered(
        "SELECT sum(ms) AS a, max(ms) FILTER (WHERE ok) AS b, min(ms) FILTER (WHERE ok) AS c "
        "FROM clicks"
    )
    assert mapped.sql == "SELECT ms AS a0, (ok) AS f0 FROM clicks"
    lifts = [lowered.partials[0].lifts for lowered in mapped.lowered]
    assert lifts == [
        ("sum(a0)",),
        ("max(a0) FILTER (WHERE f0)",),
        ("min(a0) FILTER (WHERE f0)",),
    ]
    assert len(parts.calls) == 3


def test_an_argument_has_a_column_for_each_form_that_is_asked_for() -> None:
    _, mapped = lowered("SELECT max_by(times, ts) AS a, count(ts) AS n FROM clicks")
    columns = mapped.sql.removeprefix("SELECT ").partition(" FROM ")[0]
    assert columns == (
        "to_json(transform(times, v0 -> unix_micros(v0)), map('ignoreNullFields', 'false')) AS a0, "
        "unix_micros(ts) AS a1, transform(times, v0 -> unix_micros(v0)) AS a2, ts AS a3, "
        "clicks._offset * 65536 + clicks._partition AS _seq"
    )


@pytest.mark.parametrize(
    ("call", "merges", "storages", "finish", "type"),
    [
        ("count(url)", ["sum"], ["INTEGER"], "coalesce(p0, 0)", "BIGINT"),
        ("sum(ms)", ["sum"], ["INTEGER"], "p0", "BIGINT"),
        ("sum(price)", ["sum"], ["REAL"], "p0", "DOUBLE"),
        ("avg(ms)", ["sum", "sum"], ["INTEGER", "INTEGER"], "p0 * 1e0 / nullif(p1, 0)", "DOUBLE"),
        ("max(url)", ["max"], ["TEXT"], "p0", "STRING"),
        ("min(ts)", ["min"], ["INTEGER"], "p0", "TIMESTAMP"),
        ("bool_or(ok)", ["max"], ["INTEGER"], "p0 <> 0", "BOOLEAN"),
        ("max_by(url, ms)", ["max_by"], ["TEXT", "INTEGER", "INTEGER"], "p0_0", "STRING"),
        (
            "var_pop(ms)",
            ["moments"],
            ["INTEGER", "REAL", "REAL"],
            "p0_2 / nullif(p0_0, 0)",
            "DOUBLE",
        ),
    ],
)
def test_aggregate_becomes_partials_that_merge(
    call: str, merges: list[str], storages: list[str], finish: str, type: str
) -> None:
    found, calls, result = partials(call)
    assert [partial.merge for partial in found] == merges
    assert [storage for partial in found for storage in partial.storages] == storages
    assert ([call.finish for call in calls], result) == ([finish], type)


def test_sum_of_bigints_is_kept_in_halves() -> None:
    found, _, type = partials("sum(bytes)")
    assert [p.lifts for p in found] == [("sum(shiftright(a0, 32))",), ("sum(a0 & 4294967295)",)]
    assert type == "BIGINT"


def test_aggregates_share_the_partials_that_are_the_same() -> None:
    parts, mapped = lowered("SELECT avg(ms) AS a, sum(ms) AS s, count(ms) AS n FROM clicks")
    found, calls = lower_partials(parts, mapped)
    assert [partial.lifts for partial in found] == [("sum(a0)",), ("count(a0)",)]
    finishes = ["p0 * 1e0 / nullif(p1, 0)", "p0", "coalesce(p1, 0)"]
    assert [call.finish for call in calls] == finishes


def test_condition_goes_into_every_lift() -> None:
    parts, mapped = lowered("SELECT max_by(url, ms) FILTER (WHERE ok) AS u FROM clicks")
    found, _ = lower_partials(parts, mapped)
    # An order that is NULL takes no part.
    condition = " FILTER (WHERE f0 AND a1 IS NOT NULL)"
    assert all(lift.endswith(condition) for lift in found[0].lifts)
    assert mapped.sql == (
        "SELECT url AS a0, ms AS a1, (ok) AS f0, "
        "clicks._offset * 65536 + clicks._partition AS _seq FROM clicks"
    )


@pytest.mark.parametrize(
    ("call", "counted"),
    [
        ("count(DISTINCT user)", "a0"),
        ("count(DISTINCT user) FILTER (WHERE ok)", "CASE WHEN f0 THEN a0 END"),
        ("approx_count_distinct(user)", None),
    ],
)
def test_values_are_counted_exactly_only_where_it_was_asked(call: str, counted: str | None) -> None:
    (sketch, *numbers), _, type = partials(call)
    assert (sketch.merge, sketch.counted, type) == ("hll", None, "BIGINT")
    assert [number.counted for number in numbers] == ([counted] if counted else [])


def test_finish_speaks_of_keys_and_calls_only() -> None:
    parts, mapped = lowered(
        "SELECT url, sum(ms) / count(*) AS a, round(sum(ms)) AS r FROM clicks GROUP BY url"
    )
    said = [lower_finish(expression) for _, expression in parts.items]
    assert said == ["k0", "c0 / c1", "round(c0)"]
    _, calls = lower_partials(parts, mapped)
    assert [(call.column, call.name, call.whole) for call in calls] == [
        ("c0", "sum", False),
        ("c1", "count", True),
    ]


@pytest.mark.parametrize(
    ("item", "output"),
    [
        ("url", OutputPlan("x", "", "k0", key="k0")),
        ("upper(url)", OutputPlan("x", "", "upper(k0)")),
        ("count(*)", OutputPlan("x", "", "c0")),
        (
            "count(DISTINCT user) + 1",
            OutputPlan("x", "", "c0 + 1", estimate=Approximation("speed", 0.0163)),
        ),
        (
            "approx_count_distinct(user) / count(DISTINCT user)",
            OutputPlan("x", "", "c0 / c1", estimate=Approximation("always", 0.0163)),
        ),
    ],
)
def test_output_knows_its_key_and_whether_it_is_an_estimate(item: str, output: OutputPlan) -> None:
    parts, mapped = lowered(f"SELECT {item} AS x FROM clicks GROUP BY url")
    _, expression = parts.items[0]
    assert lower_output("x", expression, parts, mapped) == output


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT sum(url) AS s FROM clicks", "sum does not accept STRING"),
        ("SELECT avg(ts) AS s FROM clicks", "avg does not accept TIMESTAMP"),
        ("SELECT bool_and(ms) AS s FROM clicks", "bool_and does not accept INT"),
        ("SELECT max_by(ms, tags) AS s FROM clicks", "max_by does not accept INT, ARRAY<STRING>"),
        ("SELECT max(m) AS s FROM clicks", "max does not accept MAP<STRING, INT>"),
        ("SELECT collect_set(m) AS s FROM clicks", "collect_set does not accept MAP<STRING, INT>"),
        ("SELECT count(DISTINCT v) AS s FROM clicks", "count_distinct does not accept VARIANT"),
        ("SELECT v FROM clicks GROUP BY v", "cannot group by 'v' of type VARIANT"),
        (
            "SELECT last(span) AS s FROM clicks",
            "a view cannot store 'span' of type interval day to second",
        ),
        (
            "SELECT last(vs) AS s FROM clicks",
            "a view cannot store 'vs' of type array<variant>",
        ),
        (
            "SELECT count(*) AS n FROM clicks GROUP BY window(url, '1 hour')",
            "a window requires a TIMESTAMP, but 'url' is STRING",
        ),
    ],
)
def test_type_that_cannot_be_kept_is_refused(sql: str, message: str) -> None:
    with pytest.raises(Unsupported) as caught:
        lowered(sql)
    assert (caught.value.message, caught.value.origin) == (message, AT)


def test_a_punctuated_window_takes_what_is_true_or_false() -> None:
    assert lowered("SELECT count(*) FROM clicks GROUP BY punctuated_window(ok)")
    with pytest.raises(Unsupported) as caught:
        lowered("SELECT count(*) FROM clicks GROUP BY punctuated_window(ms)")
    assert caught.value.message == (
        "the condition of punctuated_window must be BOOLEAN, but 'ms' is INT"
    )
