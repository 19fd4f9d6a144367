"""What is found in a project's folder, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.core.errors import BadDefinition, BadProject, HeadraceError
from headrace.define.project import load_project

CLICKS = "CREATE STREAM clicks (user STRING);"
PAGES = "CREATE TABLE pages (url STRING) USING csv LOCATION 'pages.csv';"
HITS = "CREATE VIEW hits AS SELECT count(*) AS n FROM clicks;"
NAMED = "CREATE STREAM named AS SELECT user FROM clicks WHERE user IS NOT NULL;"


def project_of(folder: Path, files: dict[str, str]) -> Path:
    for name, text in ({"headrace.toml": 'name = "shop"\n'} | files).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


def test_definitions_are_found_in_the_order_of_file_names(tmp_path: Path) -> None:
    files = {"b.sql": CLICKS + PAGES, "a.sql": HITS, "c.sql": NAMED, "notes.txt": "CREATE"}
    project = load_project(project_of(tmp_path, files))
    assert [str(d.origin) for d in project.definitions] == [
        "a.sql:1",
        "b.sql:1",
        "b.sql:1",
        "c.sql:1",
    ]
    assert [d.name for d in project.definitions] == ["hits", "clicks", "pages", "named"]


def test_definitions_are_told_apart_by_their_kind(tmp_path: Path) -> None:
    project = load_project(project_of(tmp_path, {"a.sql": CLICKS + PAGES + HITS + NAMED}))
    assert list(project.streams) == ["clicks"]
    assert list(project.tables) == ["pages"]
    assert {name: query.kind for name, query in project.queries.items()} == {
        "hits": "view",
        "named": "stream",
    }


def test_folder_without_sql_defines_nothing(tmp_path: Path) -> None:
    assert load_project(project_of(tmp_path, {})).definitions == ()


def test_sql_below_the_folder_is_not_read(tmp_path: Path) -> None:
    project = load_project(project_of(tmp_path, {"old/a.sql": "this is not SQL"}))
    assert project.definitions == ()


@pytest.mark.parametrize(("said", "place"), [("", ".headrace"), ('state = "../s"\n', "../s")])
def test_state_is_relative_to_the_project(tmp_path: Path, said: str, place: str) -> None:
    folder = project_of(tmp_path / "shop", {"headrace.toml": f'name = "shop"\n{said}'})
    assert load_project(folder).state == (folder / place).resolve()


def test_functions_are_found_where_the_file_is(tmp_path: Path) -> None:
    assert load_project(project_of(tmp_path, {})).functions_file is None
    project = load_project(project_of(tmp_path, {"functions.py": ""}))
    assert project.functions_file == tmp_path / "functions.py"


def test_reading_a_project_changes_nothing(tmp_path: Path) -> None:
    folder = project_of(tmp_path, {"a.sql": CLICKS + HITS, "functions.py": "x = 1"})
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    load_project(folder)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


@pytest.mark.parametrize(
    ("files", "kind", "sentence"),
    [
        (
            {"a.sql": CLICKS, "b.sql": "\nCREATE VIEW Clicks AS SELECT 1 FROM x"},
            BadDefinition,
            "BadDefinition: 'Clicks' is defined twice\n"
            "  detail: the first definition is at a.sql:1.\n"
            "  hint: names must be unique in a project, regardless of case and kind.\n"
            "  at b.sql:2",
        ),
        (
            {"a.sql": CLICKS, "b.sql": "\n\nCREATE STREAM x y"},
            BadDefinition,
            "BadDefinition: expected (, got 'y'\n  at b.sql:3",
        ),
    ],
)
def test_wrong_project_is_refused_at_its_file_and_line(
    tmp_path: Path, files: dict[str, str], kind: type[HeadraceError], sentence: str
) -> None:
    with pytest.raises(kind) as caught:
        load_project(project_of(tmp_path, files))
    assert str(caught.value) == sentence


def test_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    (project_of(tmp_path, {}) / "a.sql").write_bytes(b"-- caf\xe9\n")
    with pytest.raises(BadProject) as caught:
        load_project(tmp_path)
    assert str(caught.value) == "BadProject: a.sql is not UTF-8 text\n  at a.sql:1"
