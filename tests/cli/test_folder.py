"""Which project a command is about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from headrace.cli.folder import name_hint
from headrace.server import client

from .conftest import Told, document


def test_without_any_project_the_error_says_how_to_make_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Result]
) -> None:
    monkeypatch.chdir(tmp_path)
    result = call("status")
    assert result.exit_code == 1
    assert f"BadProject: there is no headrace.toml in {tmp_path}" in result.stderr
    assert "headrace new DIR" in result.stderr


def test_project_names_the_folder_from_anywhere(
    told: Told,
    shop: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: Callable[..., Result],
) -> None:
    monkeypatch.chdir(tmp_path)
    result = call("status", "--project", str(shop), "--json")
    assert document(result)["name"] == "shop"
    assert told.closed


def test_a_job_that_is_named_is_asked_through_its_server_and_no_project_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Result]
) -> None:
    class Job(Told):
        def __init__(self, url: str, token: str | None, verify: Any) -> None:
            super().__init__()
            assert (url, token) == ("http://shops:8080/v1/jobs/shop/api", "hr_ada")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADRACE_SERVER", "http://shops:8080/")
    monkeypatch.setenv("HEADRACE_TOKEN", "hr_ada")
    monkeypatch.setenv("HEADRACE_JOB", "")
    monkeypatch.setattr(client, "JobRemote", Job)
    assert document(call("--job", "shop", "status", "--json"))["name"] == "shop"
    monkeypatch.setenv("HEADRACE_JOB", "shop")
    assert document(call("query", "SELECT * FROM visitors", "--json"))["rows"]


def test_a_wrong_name_gets_the_nearest_or_all() -> None:
    assert name_hint("click", ["clicks", "orders"]) == "did you mean 'clicks'?"
    assert name_hint("x", ["clicks", "orders"]) == "available: clicks, orders."
    assert name_hint("x", []) == "available: none."
