"""The parts of a view: groups, calls and what is finished, however its author wrote them."""

from __future__ import annotations

import pytest

from headrace.compile.split import AGGREGATE_NAMES, AggregateCall, GroupKey, ViewParts, split
from headrace.compile.windows import SlidingWindow
from headrace.core.aggregate import AGGREGATES, SYNONYMS
from headrace.core.errors import Unsupported
from headrace.core.origin import Origin
from headrace.core.time import HOUR
from headrace.define.dialect import parse_query, sql_of

AT = Origin("shop.sql", 3)
COLUMNS = {"user", "url", "ms", "ok", "ts"}
N = AggregateCall("count", ("1",), None)
BY_HOUR = GroupKey("window", "ts", SlidingWindow(HOUR, HOUR))


def parts(sql: str) -> ViewParts:
    return split(parse_query(sql, AT), COLUMNS, AT, str.__eq__)


def items(found: ViewParts) -> dict[str, str]:
    return {name: sql_of(expression) for name, expression in found.items}


def test_select_is_split_where_the_layers_meet() -> None:
    found = parts(
        "SELECT url, count(*) + 1 AS n, avg(ms) FILTER (WHERE ok) AS ms FROM clicks WHERE ms > 0 "
        "GROUP BY url HAVING count(*) > 2 ORDER BY ms DESC, url LIMIT 5"
    )
    assert found.groups == [GroupKey("url", "url", None)]
    assert found.calls == [N, AggregateCall("avg", ("ms",), "ok")]
    assert items(found) == {"url": "key_0", "n": "call_0 + 1", "ms": "call_1"}
    assert found.having is not None
    assert sql_of(found.having) == "call_0 > 2"
    assert [sql_of(item) for item in found.order] == ["call_1 DESC", "key_0"]
    assert found.limit == 5


@pytest.mark.parametrize(
    ("group", "select", "expected"),
    [
        ("url", "url", GroupKey("url", "url", None)),
        ("URL", "url", GroupKey("url", "URL", None)),
        ("1", "upper(url) AS u", GroupKey("u", "upper(url)", None)),
        ("u", "upper(url) AS u", GroupKey("u", "upper(url)", None)),
        ("upper(url)", "upper(url) AS u", GroupKey("u", "upper(url)", None)),
        ("UPPER( url )", "upper(url) AS u", GroupKey("u", "upper(url)", None)),
        ("clicks.url", "url", GroupKey("url", "clicks.url", None)),
        # A column of the source comes before an alias of the same name, as in Spark.
        ("url", "url AS url", GroupKey("url", "url", None)),
        ("ALL", "url", GroupKey("url", "url", None)),
        (
            "window(ts, '1 hour')",
            "window(ts, '1 hour') AS h",
            GroupKey("h", "ts", SlidingWindow(HOUR, HOUR)),
        ),
        ("h", "window(ts, '60 minutes') AS h", GroupKey("h", "ts", SlidingWindow(HOUR, HOUR))),
    ],
)
def test_group_is_meant_by_expression_name_or_place(
    group: str, select: str, expected: GroupKey
) -> None:
    found = parts(f"SELECT {select}, count(*) AS n FROM clicks GROUP BY {group}")
    assert found.groups == [expected]
    assert list(items(found).values()) == ["key_0", "call_0"]


def test_keys_that_differ_in_the_case_of_a_text_are_two() -> None:
    month, minute = "date_format(ts, 'MM')", "date_format(ts, 'mm')"
    found = parts(
        f"SELECT {month} AS m, {minute} AS n, url = 'a' AS a, url = 'A' AS b, count(*) AS c "
        f"FROM clicks GROUP BY {month}, {minute}, url = 'a', url = 'A'"
    )
    assert [group.name for group in found.groups] == ["m", "n", "a", "b"]
    assert list(items(found).values()) == ["key_0", "key_1", "key_2", "key_3", "call_0"]


def test_key_need_not_be_selected() -> None:
    found = parts("SELECT count(*) AS n FROM clicks GROUP BY url, ms")
    assert found.groups == [GroupKey("key_0", "url", None), GroupKey("key_1", "ms", None)]


def test_distinct_groups_by_all_that_is_selected() -> None:
    found = parts("SELECT DISTINCT url, ms FROM clicks")
    assert [group.sql for group in found.groups] == ["url", "ms"]
    assert found.calls == []


@pytest.mark.parametrize(
    ("edge", "finish"),
    [
        ("window.start", "start_0"),
        ("window.end", "end_0"),
        ("window(ts, '1 hour').start", "start_0"),
        ("window(ts, '1 hour').end", "end_0"),
    ],
)
def test_edge_of_a_window_is_its_start_or_its_end(edge: str, finish: str) -> None:
    found = parts(f"SELECT {edge} AS e, count(*) AS n FROM clicks GROUP BY window(ts, '1 hour')")
    assert found.groups == [BY_HOUR]
    assert items(found)["e"] == finish


CALLS = {
    "count": "count(ms)", "sum": "sum(ms)", "avg": "avg(ms)", "min": "min(ms)", "max": "max(ms)",
    "var_samp": "var_samp(ms)", "var_pop": "var_pop(ms)", "stddev_samp": "stddev_samp(ms)",
    "stddev_pop": "stddev_pop(ms)", "bool_and": "bool_and(ms)", "bool_or": "bool_or(ms)",
    "max_by": "max_by(url, ms)", "min_by": "min_by(url, ms)", "first": "first(ms)",
    "last": "last(ms)", "count_distinct": "count(DISTINCT ms)",
    "approx_count_distinct": "approx_count_distinct(ms)",
    "percentile_approx": "percentile_approx(ms, 0.5)", "median": "median(ms)",
    "approx_top_k": "approx_top_k(ms, 3)", "count_min": "count_min(ms, -7)",
    "collect_list": "collect_list(ms, 9)", "collect_set": "collect_set(ms)",
    "histogram": "histogram(ms, -1, 2.5, 4)", "bitmap_count_distinct": "bitmap_count_distinct(ms)",
    "covar_samp": "covar_samp(url, ms)", "covar_pop": "covar_pop(url, ms)",
    "corr": "corr(url, ms)", "skewness": "skewness(ms)", "kurtosis": "kurtosis(ms)",
}  # fmt: skip
SAID = {
    "percentile_approx": (0.5,), "approx_top_k": (3,), "count_min": (-7,), "collect_list": (9,),
    "collect_set": (100,), "histogram": (-1.0, 2.5, 4),
}  # fmt: skip


def test_every_aggregate_of_the_table_can_be_written() -> None:
    assert list(CALLS) == list(AGGREGATES)
    for name, text in CALLS.items():
        arguments = ("url", "ms") if AGGREGATES[name].arguments == 2 else ("ms",)
        call = AggregateCall(name, arguments, None, SAID.get(name, ()))
        assert parts(f"SELECT {text} AS x FROM clicks").calls == [call]


@pytest.mark.parametrize(("word", "name"), SYNONYMS.items())
def test_synonym_is_the_same_call(word: str, name: str) -> None:
    said = (0.5,) if AGGREGATES[name].parameters else ()
    text = f"{word}(ok{', 0.5' if said else ''})"
    assert parts(f"SELECT {text} AS x FROM clicks").calls == [
        AggregateCall(name, ("ok",), None, said)
    ]


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("count(*)", N),
        ("count(1)", N),
        ("COUNT( * )", N),
        ("count_if(ok)", AggregateCall("count", ("1",), "ok")),
        ("first(ms) IGNORE NULLS", AggregateCall("first", ("ms",), "ms IS NOT NULL")),
        ("first(ms, true)", AggregateCall("first", ("ms",), "ms IS NOT NULL")),
        (
            "last(ms) FILTER (WHERE ok) IGNORE NULLS",
            AggregateCall("last", ("ms",), "(ok) AND (ms IS NOT NULL)"),
        ),
        ("count_if(ok) FILTER (WHERE ms > 1)", AggregateCall("count", ("1",), "(ms > 1) AND (ok)")),
        ("max(DISTINCT ms)", AggregateCall("max", ("ms",), None)),
        ("sum(ms * 2)", AggregateCall("sum", ("ms * 2",), None)),
    ],
)
def test_call_is_known_in_each_spelling(text: str, call: AggregateCall) -> None:
    assert parts(f"SELECT {text} AS x FROM clicks").calls == [call]


def test_call_that_is_said_twice_is_kept_once() -> None:
    found = parts("SELECT sum(ms) AS a, SUM(ms) / count(*) AS b FROM clicks HAVING sum(ms) > 0")
    assert found.calls == [AggregateCall("sum", ("ms",), None), N]


def test_calls_with_other_conditions_are_other_calls() -> None:
    found = parts("SELECT count(*) AS a, count(*) FILTER (WHERE ok) AS b FROM clicks")
    assert found.calls == [N, AggregateCall("count", ("1",), "ok")]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT url, ms FROM clicks", "'url' is neither grouped nor aggregated"),
        ("SELECT 1 AS one FROM clicks", "the view neither groups nor aggregates"),
        (
            "SELECT *, count(*) AS n FROM clicks",
            "SELECT * is not supported in a view over a stream",
        ),
        ("SELECT url, count(*) FROM clicks GROUP BY ms", "'url' is neither grouped nor aggregated"),
        ("SELECT max(count(*)) AS n FROM clicks", "aggregates cannot be nested"),
        ("SELECT max_by(url) AS n FROM clicks", "max_by expects 2 arguments, got 1"),
        ("SELECT avg(DISTINCT ms) AS n FROM clicks", "avg(DISTINCT …) is not supported"),
        ("SELECT mode(ms) AS n FROM clicks", "mode(ms) is not supported in a view over a stream"),
        (
            "SELECT percentile_approx(ms) AS n FROM clicks",
            "percentile_approx expects 2 arguments, got 1",
        ),
        (
            "SELECT collect_list(ms, 5, 6) AS n FROM clicks",
            "collect_list expects 1 to 2 arguments, got 3",
        ),
        (
            "SELECT percentile_approx(ms, 50) AS n FROM clicks",
            "the p of percentile_approx cannot be 50",
        ),
        (
            "SELECT collect_set(ms, ms) AS n FROM clicks",
            "the limit of collect_set cannot be ms",
        ),
        (
            "SELECT collect_set(ms, 2.5) AS n FROM clicks",
            "the limit of collect_set cannot be 2.5",
        ),
        (
            "SELECT histogram(ms, 10, 0, 5) AS n FROM clicks",
            "the low bound of histogram must be less than the high bound, got 10 and 0",
        ),
        (
            "SELECT collect_list(DISTINCT ms) AS n FROM clicks",
            "collect_list(DISTINCT …) is not supported",
        ),
        (
            "SELECT count(*) AS n FROM clicks GROUP BY window(ts, '1 parsec')",
            "the window size is not valid: 'parsec' is not a unit of time; use microseconds, "
            "milliseconds, seconds, minutes, hours, days or weeks",
        ),
        (
            "SELECT count(*) AS n FROM clicks GROUP BY window(ts, '0 s')",
            "window size and slide must be greater than zero",
        ),
        (
            "SELECT count(*) AS n FROM clicks GROUP BY window(ts, '1 hour', '2 hours')",
            "the window slide must not be longer than the window size",
        ),
    ],
)
def test_what_cannot_be_split_is_refused(sql: str, message: str) -> None:
    with pytest.raises(Unsupported) as caught:
        parts(sql)
    assert (caught.value.message, caught.value.origin) == (message, AT)


def test_hint_names_every_aggregate_as_it_is_written() -> None:
    names = AGGREGATE_NAMES.split(", ")
    assert names == [
        *(name for name in AGGREGATES if name != "count_distinct"),
        "count(DISTINCT …)",
    ]


def test_order_by_a_name_means_the_output() -> None:
    found = parts("SELECT -ms AS ms, count(*) AS n FROM clicks GROUP BY ms ORDER BY ms")
    assert [sql_of(item) for item in found.order] == ["-key_0"]


@pytest.mark.parametrize("limit", ["1 + 1", "ALL"])
def test_limit_that_is_no_number_is_refused(limit: str) -> None:
    with pytest.raises(Unsupported):
        parts(f"SELECT url, count(*) AS n FROM clicks GROUP BY url LIMIT {limit}")


def test_count_of_all_without_a_name_is_named_as_it_is_written() -> None:
    assert list(items(parts("SELECT count(*) FROM clicks"))) == ["count(*)"]
