"""What a rule becomes, and the sentence for each rule that cannot be kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.compile.plan import Plan
from headrace.core.errors import HeadraceError
from headrace.define.project import duplicate_definitions
from tests.serving.rule_bench import BUSY, SLOW, TOLD, VISITS, rule_plan, rule_project

from .conftest import Compile


def checked_plan(sql: str, folder: Path) -> Plan:
    for mistake in duplicate_definitions(rule_project(folder, sql).definitions):
        raise mistake
    return rule_plan(sql, folder)


def test_rule_over_a_stream_is_a_view_of_places_and_values() -> None:
    plan = rule_plan(f"{SLOW} SEVERITY 'high' SUPPRESS FOR INTERVAL 1 HOUR PER USER")
    view = plan.view("_alerts_slow")
    assert view is not None
    assert [output.name for output in view.outputs] == [
        "_partition", "_offset", "_time", "_arrived", "page", "user", "ms", "ts",
    ]  # fmt: skip
    assert (view.kind, view.stream, view.partials) == ("mergeable", "clicks", ())
    (rule,) = plan.rules
    assert (rule.columns, rule.per, rule.keys) == (("page", "user", "ms", "ts"), ("user",), None)
    assert (rule.severity, rule.streams) == ("high", ("clicks",))


@pytest.mark.parametrize(
    ("sql", "time"),
    [
        ("CREATE RULE r AS SELECT page FROM clicks", "coalesce(_dated, _arrived_at)"),
        ("CREATE RULE r AS SELECT page FROM times", "coalesce(_dated, _arrived_at)"),
        ("CREATE RULE r AS SELECT page FROM pages", "_arrived_at"),
    ],
)
def test_alert_is_dated_by_its_event_where_the_stream_says_when_it_was(sql: str, time: str) -> None:
    streams = "CREATE STREAM times AS SELECT page, ts AS at FROM clicks;"
    streams += "CREATE STREAM pages AS SELECT page FROM clicks;"
    view = rule_plan(streams + sql).view("_alerts_r")
    assert view is not None
    assert time in view.keys[2].sql
    assert ("_dated" in view.keys[2].sql) == ("_dated" in time)


def test_rule_over_a_view_knows_rows_by_the_views_keys() -> None:
    assert rule_plan(BUSY).rules[0].keys == ("page", "minute")
    some = "CREATE RULE r AS SELECT n, page AS p, minute FROM hits WHERE n > 1"
    assert rule_plan(some).rules[0].keys == ("p", "minute")
    grouped = "CREATE RULE r AS SELECT page, sum(n) AS n FROM hits GROUP BY page HAVING sum(n) > 1"
    assert rule_plan(grouped).rules[0].keys == ("page",)
    assert rule_plan("CREATE RULE r AS SELECT sum(n) AS n FROM hits").rules[0].keys == ()
    assert rule_plan("CREATE RULE r AS SELECT n, page FROM hits").rules[0].keys == ("n", "page")


@pytest.mark.parametrize(
    ("select", "session"),
    [
        ("SELECT * FROM visits", "visit"),
        ("SELECT visit AS v, page FROM visits WHERE n > 1", "v"),
        ("SELECT visit, n FROM visits", None),
        ("SELECT * FROM hits", None),
    ],
)
def test_rule_knows_which_key_is_a_session(select: str, session: str | None) -> None:
    assert rule_plan(f"{VISITS}CREATE RULE r AS {select}").rules[0].session == session


def test_hidden_definitions_are_not_shown() -> None:
    plan = rule_plan(f"{SLOW}; {BUSY}")
    assert [view.name for view in plan.shown_views] == ["hits", "alerts"]
    assert plan.shown_derived == ()
    assert [view.name for view in plan.views] == ["hits", "_alerts_busy", "_alerts_slow", "alerts"]


def test_what_is_done_with_alerts_changes_nothing_that_is_kept() -> None:
    def version(plan: Plan) -> str:
        view = plan.view("_alerts_slow")
        assert view is not None
        return view.recompute

    other = rule_plan(f"{SLOW} SEVERITY 'low' NOTIFY FILE 'x.ndjson' WITH CORRECTIONS")
    assert version(rule_plan(SLOW)) == version(other)


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        (
            "CREATE RULE r AS SELECT * FROM nothing",
            "rule 'r' reads 'nothing', which is not defined",
        ),
        (
            "CREATE RULE r AS SELECT count(*) AS n FROM clicks",
            "rule 'r' is not stateless: it has AGGREGATE",
        ),
        (
            "CREATE RULE r AS SELECT h.page FROM hits h JOIN clicks c ON h.page = c.page",
            "rule 'r' reads both views and streams",
        ),
        (
            f"{SLOW} SUPPRESS FOR INTERVAL 1 HOUR PER country",
            "rule 'slow' suppresses PER 'country', but its SELECT has no such column",
        ),
        (
            f"{SLOW} NOTIFY STREAM elsewhere",
            "rule 'slow' notifies 'elsewhere', which is not a declared stream",
        ),
        (
            f"CREATE STREAM bare (page STRING); {SLOW} NOTIFY STREAM bare",
            "rule 'slow' notifies stream 'bare', which has no id",
        ),
        (
            "CREATE STREAM a (x STRING) WITH (id = 'i');"
            "CREATE RULE r AS SELECT page FROM told NOTIFY STREAM a;"
            f"CREATE RULE q AS SELECT x FROM a NOTIFY STREAM told; {TOLD}",
            "rule 'r' is circular: it reads events that come from stream 'a'",
        ),
        (
            f"{SLOW} NOTIFY 'https://ops.example/'",
            "rule 'slow' notifies host 'ops.example', which is not listed in notify.hosts",
        ),
        (
            f"{SLOW} NOTIFY 'http://ops.example/'",
            "rule 'slow' notifies 'http://ops.example/', which is not https",
        ),
        (
            f"{SLOW} NOTIFY EMAIL 'a@b.org'",
            "rule 'slow' notifies by e-mail, which requires a mail server",
        ),
        (
            f"CREATE SINK s FROM hits INTO FILE 'x'; {SLOW} NOTIFY FILE './x'",
            "rule 'slow' and sink 's' write to the same file './x'",
        ),
        (
            f"{SLOW} NOTIFY FILE '../next.sql'",
            "rule 'slow' writes to '../next.sql', which is not in the project's output folder",
        ),
        (
            f"CREATE STREAM Alerts (page STRING); {SLOW}",
            "'Alerts' is reserved for the view of all alerts",
        ),
        (f"{SLOW}; {SLOW}", "'slow' is defined twice"),
    ],
)
def test_rules_that_cannot_be_kept_are_refused(sql: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(HeadraceError) as refused:
        checked_plan(sql, tmp_path)
    assert refused.value.message == sentence


def test_spark_knows_every_type_of_a_rules_columns(compiled: Compile) -> None:
    plan = compiled(
        "CREATE STREAM dear AS SELECT *, price * 2 AS twice FROM clicks WHERE price > 9.5;"
        "CREATE RULE dear_one AS SELECT * FROM dear WHERE ok;"
    )
    view = plan.view("_alerts_dear_one")
    assert view is not None
    assert {output.name: output.type for output in view.outputs} == {
        "_partition": "INT", "_offset": "BIGINT", "_time": "TIMESTAMP",
        "_arrived": "TIMESTAMP", "user": "STRING", "url": "STRING", "ms": "INT",
        "bytes": "BIGINT", "price": "DOUBLE", "ok": "BOOLEAN",
        "tags": "ARRAY<STRING>", "day": "DATE", "ts": "TIMESTAMP", "twice": "DOUBLE",
    }  # fmt: skip


def test_column_that_is_not_there_is_named_with_its_line(compiled: Compile) -> None:
    with pytest.raises(HeadraceError) as refused:
        compiled("CREATE RULE r AS\nSELECT * FROM clicks\nWHERE pricee > 9")
    said: Any = refused.value
    assert said.message == "there is no column 'pricee'"
    assert str(said.origin).startswith("shop.sql:7")
