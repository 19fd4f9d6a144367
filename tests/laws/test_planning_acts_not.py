"""Law 6, nothing acts while being defined: loading and compiling a project leaves its folder as it
was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.compile.passes import compile_project
from headrace.core.errors import HeadraceError
from headrace.define.functions import load_functions
from headrace.define.project import load_project
from headrace.spark.analyse import SparkAnalyser

FILES = {
    "headrace.toml": 'name = "shop"\n',
    "shop.sql": """
        CREATE STREAM clicks (user STRING, url STRING, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL
          1 MINUTE);
        CREATE TABLE sections (url STRING, section STRING) USING csv LOCATION 'sections.csv';
        CREATE STREAM long AS SELECT user, url, ts FROM clicks WHERE length(url) > 3;
        CREATE VIEW hits AS SELECT section, window(ts, '1 hour') AS hour, count(DISTINCT user) AS n
          FROM long l LEFT JOIN sections s ON l.url = s.url GROUP BY section, window(ts, '1 hour');
        CREATE VIEW best AS SELECT section, sum(n) AS total FROM hits GROUP BY section;
    """,
    "sections.csv": "url,section\n/,home\n",
    "functions.py": "from headrace.define.functions import function\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file and folder with its content and the time of its last change."""
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in [folder, *folder.rglob("*")]
    }


def compiled(spark: Any, folder: Path) -> Any:
    project = load_project(folder)
    assert project.functions_file is not None
    load_functions(project.functions_file)
    return compile_project(project, SparkAnalyser(spark))


def test_compiling_leaves_the_folder_unchanged(
    spark: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    before = snapshot(folder)
    plan = compiled(spark, folder)
    assert [view.name for view in plan.views] == ["hits", "best"]
    assert snapshot(folder) == before


def test_compiling_leaves_nothing_in_the_session(spark: Any, folder: Path) -> None:
    def known() -> set[str]:
        return {row.tableName for row in spark.sql("SHOW TABLES").collect()}

    before = known()
    plan = compiled(spark, folder)
    defined = {one.name for one in (*plan.streams, *plan.tables, *plan.derived, *plan.views)}
    assert {"clicks", "sections", "long", "hits", "best"} == defined
    assert known() == before


def test_a_refused_definition_changes_nothing_either(spark: Any, folder: Path) -> None:
    (folder / "wrong.sql").write_text(
        "CREATE VIEW wrong AS SELECT nothing, count(*) AS n FROM clicks GROUP BY nothing"
    )
    before = snapshot(folder)
    with pytest.raises(HeadraceError):
        compiled(spark, folder)
    assert snapshot(folder) == before


def test_the_same_definitions_give_the_same_plan(spark: Any, folder: Path) -> None:
    assert compiled(spark, folder) == compiled(spark, folder)
