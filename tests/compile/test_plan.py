"""Fingerprints: what changes a view's partials changes `recompute`; what changes only how it is
read changes `fingerprint` alone; what changes nothing changes neither.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from headrace.compile.plan import Plan, ViewPlan

from .conftest import SOURCES, Compile

VIEW = "CREATE VIEW answer AS SELECT url, count(*) AS n FROM clicks WHERE ms > 0 GROUP BY url"
SAME = {
    "formatting": "create view answer as\n select url , COUNT( * ) n -- how many\n from clicks\n"
    "  where ms>0 group by url;",
    "group by place": VIEW.replace("GROUP BY url", "GROUP BY 1"),
    "group by all": VIEW.replace("GROUP BY url", "GROUP BY ALL"),
}
READ_OTHERWISE = {
    "having": f"{VIEW} HAVING count(*) > 1",
    "order": f"{VIEW} ORDER BY n",
    "direction": f"{VIEW} ORDER BY n DESC",
    "limit": f"{VIEW} LIMIT 3",
    "name": VIEW.replace("AS n", "AS hits"),
    "expression": VIEW.replace("count(*) AS n", "count(*) + 1 AS n"),
    "columns": VIEW.replace("url, count(*) AS n", "count(*) AS n, url"),
}
RECOMPUTED = {
    "where": VIEW.replace("ms > 0", "ms > 1"),
    "key": VIEW.replace("url", "user"),
    "aggregate": VIEW.replace("count(*)", "sum(ms)"),
    "one more aggregate": VIEW.replace("AS n", "AS n, max(ms) AS m"),
    "filter": VIEW.replace("count(*)", "count(*) FILTER (WHERE ok)"),
    "join": VIEW.replace("url", "section")
    .replace("FROM clicks", "FROM clicks JOIN pages ON clicks.url = pages.url"),
}  # fmt: skip


def view(plan: Plan, name: str = "answer") -> ViewPlan:
    found = plan.view(name)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def before(compiled: Compile) -> ViewPlan:
    return view(compiled(VIEW))


@pytest.mark.parametrize("change", SAME)
def test_same_meaning_has_the_same_fingerprints(
    change: str, before: ViewPlan, compiled: Compile
) -> None:
    after = view(compiled(SAME[change]))
    assert (after.recompute, after.outputs) == (before.recompute, before.outputs)
    if change == "formatting":
        assert after.fingerprint == before.fingerprint


@pytest.mark.parametrize("change", READ_OTHERWISE)
def test_view_that_is_read_otherwise_needs_no_rebuild(
    change: str, before: ViewPlan, compiled: Compile
) -> None:
    after = view(compiled(READ_OTHERWISE[change]))
    assert after.fingerprint != before.fingerprint
    assert after.recompute == before.recompute


@pytest.mark.parametrize("change", RECOMPUTED)
def test_view_of_other_partials_is_rebuilt(
    change: str, before: ViewPlan, compiled: Compile
) -> None:
    after = view(compiled(RECOMPUTED[change]))
    assert after.recompute != before.recompute
    assert after.fingerprint != before.fingerprint


@pytest.mark.parametrize(
    ("change", "rebuilt"),
    [
        (("ms INT", "ms BIGINT"), True),
        (("user STRING", "member STRING"), True),
        (("ts TIMESTAMP)", "ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 HOUR)"), False),
        (("'pages.csv'", "'other.csv'"), False),
    ],
)
def test_view_is_rebuilt_when_what_it_reads_has_changed(
    change: tuple[str, str], rebuilt: bool, before: ViewPlan, compiled: Compile
) -> None:
    after = view(compiled(VIEW, sources=SOURCES.replace(*change)))
    assert (after.recompute != before.recompute) == rebuilt


def test_view_over_a_table_is_rebuilt_when_the_table_is_another(compiled: Compile) -> None:
    one, other = (
        view(compiled(RECOMPUTED["join"], sources=SOURCES.replace("pages.csv", name)))
        for name in ("pages.csv", "other.csv")
    )
    assert one.recompute != other.recompute


def test_view_is_rebuilt_when_its_derived_stream_has_changed(compiled: Compile) -> None:
    text = "CREATE STREAM slow AS SELECT url FROM clicks WHERE ms > {n};"
    query = "CREATE VIEW answer AS SELECT url, count(*) AS n FROM slow GROUP BY url"
    one, same, other = (
        view(compiled(text.format(n=n) + query)).recompute for n in ("1", " 1 ", "2")
    )
    assert one == same
    assert one != other


def test_place_and_other_views_are_no_part_of_a_fingerprint(
    before: ViewPlan, compiled: Compile
) -> None:
    other = "\n\nCREATE VIEW other AS SELECT count(*) AS n FROM clicks;"
    after = view(compiled(other + VIEW))
    assert after.origin != before.origin
    assert after.fingerprint == before.fingerprint


def test_code_of_functions_counts_only_where_one_is_called(
    compiled: Compile, tmp_path: Path
) -> None:
    window = "CREATE VIEW answer AS SELECT window(ts, '1 hour') AS w, count(*) AS n FROM clicks "
    window += "GROUP BY window(ts, '1 hour')"
    plain, called = [], []
    for code in ("x = 1", "x = 2"):
        (tmp_path / "functions.py").write_text(code)
        plain.append(view(compiled(VIEW, folder=tmp_path)).recompute)
        # To the fingerprint, a function that sqlglot does not know may be the project's.
        called.append(view(compiled(window, folder=tmp_path)).recompute)
    assert plain[0] == plain[1]
    assert called[0] != called[1]


def test_plan_survives_as_json(compiled: Compile) -> None:
    text = VIEW + "; CREATE VIEW top AS SELECT url FROM answer ORDER BY n LIMIT 1"
    plan = compiled(text)
    again = msgspec.json.decode(msgspec.json.encode(plan), type=Plan)
    assert again == plan
    assert [v.fingerprint for v in again.views] == [v.fingerprint for v in plan.views]


def test_views_and_outputs_are_found_whatever_their_case(compiled: Compile) -> None:
    plan = compiled(VIEW)
    assert plan.view("ANSWER") == plan.views[0]
    assert plan.view("other") is None
    output = plan.views[0].output("N")
    assert output is not None
    assert output.name == "n"
    assert plan.stream("clicks").schema.names[:2] == ("user", "url")


def test_code_of_a_function_counts_where_only_a_derived_stream_calls_it(
    compiled: Compile, tmp_path: Path
) -> None:
    # `luhn_check` is a name that only Spark knows, as a project's own function is.
    sql = (
        "CREATE STREAM checked AS SELECT luhn_check(user) AS valid FROM clicks;"
        "CREATE VIEW answer AS SELECT valid, count(*) AS n FROM checked GROUP BY valid"
    )
    found = []
    for code in ("# one", "# two"):
        (tmp_path / "functions.py").write_text(code)
        found.append(view(compiled(sql, folder=tmp_path)).recompute)
    assert found[0] != found[1]
