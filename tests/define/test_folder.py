"""Which folder's project is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.define.folder import find_project_folder


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a project, as the current one."""
    (tmp_path / "headrace.toml").write_text('name = "shop"\n')
    (tmp_path / "lookups").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_given_folder_is_taken_as_it_is(shop: Path) -> None:
    assert find_project_folder(Path("elsewhere")) == Path("elsewhere")


def test_the_nearest_folder_above_with_a_headrace_toml_is_taken(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_project_folder(None) == shop
    monkeypatch.chdir(shop / "lookups")
    assert find_project_folder(None) == shop


def test_without_any_it_is_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_project_folder(None) == tmp_path
