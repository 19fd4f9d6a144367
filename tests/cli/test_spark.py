"""The template and the demo are compiled by the real Spark; the one module here that starts it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from headrace.define.project import Project
from headrace.run.compiling import compile_with

from .conftest import document
from .test_examples import CALLS, INTRUSION, SHOP, WEBHOOKS, sigma_of_intrusion

# PySpark would rather read the kind of an Arrow function from type hints, which ours need not have.


@pytest.fixture(autouse=True)
def shared(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands compile in the shared session instead of one of their own."""

    def compile(project: Project) -> Any:
        return compile_with(spark, project)

    monkeypatch.setattr("headrace.run.compiling.compile_in_spark", compile)


def test_a_new_project_is_ok(shop: Path, call: Callable[..., Result]) -> None:
    assert call("check").stdout == "ok: 1 stream, 1 table, 2 views\n"


def test_a_wrong_column_is_told_with_file_and_line(shop: Path, call: Callable[..., Result]) -> None:
    (shop / "wrong.sql").write_text(
        "CREATE VIEW w AS\nSELECT urk, count(*) AS n\nFROM clicks GROUP BY urk;"
    )
    result = call("check", "--json")
    assert result.exit_code == 1
    (error,) = document(result)["errors"]
    assert error["condition"] == "UnknownColumn"
    assert error["hint"] == "did you mean 'url'?"
    assert error["origin"].startswith("wrong.sql:")


def test_the_demo_is_planned_with_these_kinds(call: Callable[..., Result]) -> None:
    said = document(call("plan", str(SHOP), "--json"))
    kinds = {view["name"]: view["kind"] for view in said["views"]}
    kept = dict.fromkeys(["visitors", "sales", "totals"], "mergeable")
    assert kinds == {**kept, "busiest": "read"}
    assert [derived["name"] for derived in said["derived"]] == ["visits"]


def test_the_demo_is_explained(call: Callable[..., Result]) -> None:
    said = call("explain", "visitors", "--project", str(SHOP)).stdout
    assert "events are grouped by url, section and hour (windows of 1h)" in said
    assert "visitors may be an estimate (± 1.6%)" in said


def test_the_calls_are_decided_by_rules(call: Callable[..., Result]) -> None:
    assert call("check", str(CALLS)).stdout == "ok: 3 streams, 1 table, 3 views\n"
    said = call("explain", "directions", "--project", str(CALLS)).stdout
    assert said.startswith("directions is a derived stream: ")
    assert "WHEN c.type IN (1, 3, 5, 15) THEN 'O'" in said


def test_the_webhooks_are_ok(call: Callable[..., Result]) -> None:
    assert call("check", str(WEBHOOKS)).stdout == "ok: 6 streams, 0 tables, 14 views, 1 rule\n"


def test_the_intrusions_compile_with_their_sigma_rules_beside_them(
    call: Callable[..., Result], tmp_path: Path
) -> None:
    for name in ("headrace.toml", "intrusion.sql"):
        (tmp_path / name).write_text((INTRUSION / name).read_text("utf-8"), "utf-8")
    assert call("check", str(tmp_path)).stdout == "ok: 6 streams, 0 tables, 3 views, 4 rules\n"
    (tmp_path / "sigma.sql").write_text(sigma_of_intrusion().sql, "utf-8")
    assert call("check", str(tmp_path)).stdout == "ok: 8 streams, 0 tables, 3 views, 7 rules\n"
