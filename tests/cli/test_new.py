"""A new project works, and never overwrites anything."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from headrace.cli.new import TEMPLATE
from headrace.compile.resolve import resolve
from headrace.define.project import load_project

from .conftest import document


def test_a_new_project_has_the_name_of_its_folder_and_can_be_read(shop: Path) -> None:
    project = load_project(shop)
    assert project.settings.name == "shop"
    assert (*project.streams, *project.tables, *project.queries) == (
        "clicks", "sections", "visitors", "busiest",
    )  # fmt: skip
    assert list(resolve(project)) == ["visitors", "busiest"]
    assert (shop / project.tables["sections"].location).is_file()


def test_its_headrace_toml_says_only_the_name(shop: Path) -> None:
    assert tomllib.loads((shop / "headrace.toml").read_text()) == {"name": "shop"}


def test_the_next_commands_are_told_and_are_those_of_the_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Result]
) -> None:
    monkeypatch.chdir(tmp_path)
    said = document(call("new", "a", "--json"))
    assert said["folder"] == str(tmp_path / "a")
    assert "lookups/sections.csv" in said["files"]
    readme = (TEMPLATE / "README.md").read_text()
    assert len(said["next"]) == 3
    told = call("new", "b").stdout
    for command in said["next"]:
        go, _, step = command.partition(" && ")
        assert go == "cd a"
        assert step in readme
        assert f"  cd b && {step}\n" in told


@pytest.mark.parametrize("name", ['a "b" \\ c', "ü € 🙂"])
def test_any_name_of_a_folder_is_a_name_of_a_project(
    name: str, tmp_path: Path, call: Callable[..., Result]
) -> None:
    assert call("new", str(tmp_path / name)).exit_code == 0
    assert load_project(tmp_path / name).settings.name == name


def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path, call: Callable[..., Result]) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    result = call("new", str(tmp_path))
    assert result.exit_code == 1
    assert f"BadProject: the folder {tmp_path} is not empty" in result.stderr
    assert "detail: it contains mine.txt." in result.stderr
    assert document(call("new", str(tmp_path), "--json"))["condition"] == "BadProject"
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_file_is_refused(tmp_path: Path, call: Callable[..., Result]) -> None:
    (tmp_path / "a").write_text("")
    result = call("new", str(tmp_path / "a"))
    assert result.exit_code == 1
    assert "is a file" in result.stderr


def test_the_current_folder_may_be_used_if_only_git_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Result]
) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    said = document(call("new", ".", "--json"))
    assert said["next"][0] == "headrace run"
    assert load_project(tmp_path).settings.name == tmp_path.name
