"""Each project in examples/ can be checked and compiled as it stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.define.project import load_project
from headrace.run.compiling import compile_with

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").iterdir())


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_an_example_compiles(folder: Path, spark: Any) -> None:
    project = load_project(folder)
    plan = compile_with(spark, project)
    assert {stream.name for stream in plan.streams} == set(project.streams)
    assert {view.name for view in plan.shown_views} >= {
        query.name for query in project.queries.values() if query.kind == "view"
    }
    assert [watch.name for watch in plan.watches] == list(project.watches)
