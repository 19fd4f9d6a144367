"""What is said about a project before it runs. Spark is played by a plan made by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from serving.bench import plan_of
from serving.test_set_aside import SQL
from typer.testing import Result

from headrace.cli import planning
from headrace.compile.plan import Plan
from headrace.core.errors import NoJava, UnknownColumn
from headrace.core.origin import Origin
from headrace.define.project import Project

from .conftest import document
from .plans import BUSIEST, CLICKS, PLAN, SINK, TOTALS, VISITORS


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> list[Project]:
    """Projects that were compiled; each gets the same plan."""
    compiled: list[Project] = []

    def compile(project: Project) -> Plan:
        compiled.append(project)
        return PLAN

    monkeypatch.setattr("headrace.run.compiling.compile_in_spark", compile)
    return compiled


def test_check_counts_what_is_defined(
    shop: Path, spark: list[Project], call: Callable[..., Result]
) -> None:
    result = call("check", str(shop))
    assert result.exit_code == 0
    assert result.stdout == "ok: 1 stream, 1 table, 2 views\n"
    counts = {"ok": True, "streams": 1, "tables": 1, "views": 2, "errors": [], "warnings": []}
    assert document(call("check", "--json")) == counts
    assert len(spark) == 2


def test_check_finds_several_errors_without_starting_spark(
    shop: Path, spark: list[Project], call: Callable[..., Result]
) -> None:
    (shop / "lookups" / "sections.csv").unlink()
    more = (
        "\nCREATE STREAM taps (a INT) WITH (source = 'htp');\nCREATE VIEW v AS SELECT a FROM tap;"
    )
    (shop / "more.sql").write_text(more)
    result = call("check")
    assert result.exit_code == 1
    assert not spark
    assert "BadDefinition: stream 'taps' has an unknown source: 'htp'" in result.stdout
    assert "  at more.sql:2" in result.stdout
    assert "BadDefinition: table 'sections' has no file at lookups/sections.csv" in result.stdout
    assert "UnknownName: view 'v' reads 'tap', which is not defined" in result.stdout
    said = document(call("check", "--json"))
    assert [error["origin"] for error in said["errors"]] == [
        "more.sql:2",
        "shop.sql:11",
        "more.sql:3",
    ]


def test_check_tells_the_mistakes_of_all_statements_at_once(
    shop: Path, spark: list[Project], call: Callable[..., Result]
) -> None:
    (shop / "more.sql").write_text(
        "CREATE CHAIR red;\nCREATE STREAM taps (a BLOB);\n"
        "CREATE VIEW v AS SELECT count(*) AS n FROM taps;\n"
        "CREATE VIEW w AS SELECT count(*) AS n FROM clicks WHERE ts > TIMESTAMP 'now';\n"
        "CREATE VIEW x AS SELEC url FROM clicks;\n"
        "CREATE VIEW h AS SELECT histogram(1, 9, 0, 5) AS h FROM clicks;\n"
        "CREATE SINK o FROM visitors INTO FILE '../o';\n"
        "CREATE VIEW y AS SELECT window(ts, '1 hur') AS h, count(*) AS n FROM clicks GROUP BY 1;\n"
    )
    (shop / "other.sql").write_text("CREATE VIEW z AS SELECT 'x FROM clicks;\n")
    result = call("check", "--json")
    assert (result.exit_code, spark) == (1, [])
    errors = document(result)["errors"]
    # That 'taps' is not defined is no mistake of view 'v'.
    assert [error["origin"] for error in errors] == [
        "more.sql:1",
        "more.sql:2",
        "other.sql:1",
        "more.sql:7",
        "more.sql:4",
        "more.sql:5",
        "more.sql:6",
        "more.sql:8",
    ]


def test_check_warns_of_patterns_that_may_be_given_up(
    shop: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Result]
) -> None:
    (shop / "shop.sql").write_text(SQL)
    monkeypatch.setattr("headrace.run.compiling.compile_in_spark", lambda _: plan_of(SQL))
    result = call("check")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "Warning: pattern matching for 'rises' may exceed the limit of steps per key",
        "  detail: a key that needs more than 200,000 steps (pattern.steps_max) is skipped: its "
        "events are stored, but its matches are not detected.",
        "  hint: give repeated variables mutually exclusive conditions that do not compare rows, "
        "or bound them with WITHIN.",
        "  at shop.sql:5",
        "ok: 2 streams, 0 tables, 3 views",
    ]
    assert len(document(call("check", "--json"))["warnings"]) == 1


def test_check_finds_a_circle_without_starting_spark(
    shop: Path, spark: list[Project], call: Callable[..., Result]
) -> None:
    more = "CREATE STREAM a AS SELECT * FROM b;\nCREATE STREAM b AS SELECT * FROM a;"
    (shop / "more.sql").write_text(more)
    assert "definitions are circular" in call("check").stdout
    assert not spark


def test_check_tells_an_error_of_spark_with_file_and_line(
    shop: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Result]
) -> None:
    error = UnknownColumn("there is no column 'page'", origin=Origin("shop.sql", 15))
    _compiling_raises(monkeypatch, error)
    result = call("check")
    assert result.exit_code == 1
    assert result.stdout == "UnknownColumn: there is no column 'page'\n  at shop.sql:15\n"


def test_check_of_a_file_that_cannot_be_read_is_an_error_like_the_others(
    shop: Path, call: Callable[..., Result]
) -> None:
    (shop / "shop.sql").write_text("CREATE CHAIR red;")
    result = call("check", "--json")
    assert result.exit_code == 1
    said = document(result)
    assert (said["ok"], said["errors"][0]["condition"]) == (False, "Unsupported")


def test_a_missing_java_is_no_fault_of_the_project(
    shop: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Result]
) -> None:
    _compiling_raises(monkeypatch, NoJava("no Java was found"))
    result = call("check", "--json")
    assert result.exit_code == 5
    assert document(result)["condition"] == "NoJava"


def test_plan_of_a_project_that_never_ran_is_all_new(
    shop: Path, spark: list[Project], call: Callable[..., Result]
) -> None:
    result = call("plan")
    assert result.exit_code == 0
    assert [line.rstrip() for line in result.stdout.splitlines()] == [
        "stream  source  watermark    change",
        "clicks  http    ts less 10m  new",
        "",
        "table     format  location",
        "sections  csv     lookups/sections.csv",
        "",
        "view      kind       reads             change  reason",
        "visitors  mergeable  clicks, sections  new     built from the whole history",
        "totals    mergeable  clicks            new     built from the whole history",
        "busiest   read       visitors          new     derived when it is read",
    ]
    assert not (shop / ".headrace").exists()


def test_plan_tells_each_kind_of_change(shop: Path) -> None:
    replace = msgspec.structs.replace
    deployed = replace(
        PLAN,
        streams=(replace(CLICKS, key=None),),
        views=(
            replace(VISITORS, limit=5),
            replace(TOTALS, map_sql="SELECT 2 AS a0 FROM clicks"),
            BUSIEST,
            replace(TOTALS, name="old"),
        ),
    )
    report = planning.plan_report(planning.load(shop), PLAN, deployed)
    views = {view["name"]: view["change"] for view in report.document["views"]}
    assert views == {"visitors": "reread", "totals": "rebuild", "busiest": "unchanged"}
    assert report.document["removed"] == ["old"]
    assert report.document["streams"][0]["change"] == "changed"
    assert report.document["streams"][0]["columns"] == {"user": "STRING", "ts": "TIMESTAMP"}
    unchanged = planning.plan_report(planning.load(shop), PLAN, PLAN).document
    assert {each["change"] for each in (*unchanged["streams"], *unchanged["views"])} == {
        "unchanged"
    }


def test_plan_shows_sinks(shop: Path) -> None:
    from headrace.define.project import load_project

    made = msgspec.structs.replace(PLAN, sinks=(SINK,))
    report = planning.plan_report(load_project(shop), made, None)
    assert report.document["sinks"] == [
        {
            "name": "hourly",
            "view": "visitors",
            "into": "file out/hourly.jsonl",
            "guarantee": "exactly_once",
            "emit": "ON TIME ACCUMULATING",
        }
    ]
    assert len(report.parts) == len(planning.plan_report(load_project(shop), PLAN, None).parts) + 2


def test_explain_tells_an_unknown_view_without_starting_spark(
    shop: Path, spark: list[Project], call: Callable[..., Result]
) -> None:
    result = call("explain", "visitor")
    assert result.exit_code == 3
    assert "hint: did you mean 'visitors'?" in result.stderr
    assert not spark


def test_explain_prints_the_explanation(
    shop: Path, spark: list[Project], call: Callable[..., Result]
) -> None:
    assert call("explain", "visitors").stdout.startswith("visitors (shop.sql:14) is mergeable: ")
    said = document(call("explain", "visitors", "--json"))
    assert [section["name"] for section in said["sections"]] == [
        "map",
        "partial",
        "merge",
        "finish",
    ]
    assert said["estimates"][0]["column"] == "visitors"


def _compiling_raises(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def compile(project: Project) -> Plan:
        raise error

    monkeypatch.setattr("headrace.run.compiling.compile_in_spark", compile)
