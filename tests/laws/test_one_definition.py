"""Law 5, one definition: batch and speed are two lowerings of one plan, and neither imports the
other.

The import contract in pyproject.toml says so for imports that exist when a module is loaded and
for all that they reach; here every import statement is read, also one inside a function.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace

ROOT = Path(headrace.__file__).parent


def imports_of(path: Path) -> Iterator[str]:
    """The modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import, which this test cannot follow"
            yield from (f"{node.module}.{name.name}" for name in node.names)


def room_imports(room: str) -> set[str]:
    return {name for path in (ROOT / room).rglob("*.py") for name in imports_of(path)}


@pytest.mark.parametrize(("room", "other"), [("batch", "speed"), ("speed", "batch")])
def test_neither_layer_imports_the_other(room: str, other: str) -> None:
    found = room_imports(room)
    assert found, "the room is empty, so this test says nothing"
    assert [name for name in found if name.startswith(f"headrace.{other}")] == []


@pytest.mark.parametrize("room", ["batch", "speed"])
def test_a_layer_reads_plans_and_no_definitions_of_views(room: str) -> None:
    # Settings, a stream's pace, and the classes of processors, which no SQL can say.
    known = {"headrace.define.settings", "headrace.define.processors", "headrace.define.pace"}
    known |= {"headrace.define.definitions"} if room == "speed" else set()
    read = {name for name in room_imports(room) if name.startswith("headrace.define")}
    assert {name.rpartition(".")[0] for name in read} <= known


@pytest.mark.parametrize("path", ["batch/build.py", "speed/epoch.py"])
def test_both_layers_run_the_plans_own_sql(path: str) -> None:
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert "partial_sql" in used
