"""The reference shares no code with the engine: of Headrace it imports only time and errors."""

from __future__ import annotations

import ast
from pathlib import Path

import headrace.testing.reference

ALLOWED = ("headrace.core.time", "headrace.core.errors", "headrace.testing.reference", "sqlglot")
STANDARD = {
    "base64",
    "__future__", "collections", "contextlib", "csv", "dataclasses", "datetime", "decimal",
    "fractions", "functools", "io", "itertools", "json", "math", "operator", "re", "types",
    "typing",
}  # fmt: skip


def imported(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    plain = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    return plain | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}


def test_the_reference_imports_only_time_and_errors() -> None:
    paths = list(Path(headrace.testing.reference.__path__[0]).glob("*.py"))
    names = {name for path in paths for name in imported(path)}
    others = {name for name in names if not name.startswith(ALLOWED)}
    assert len(paths) > 5
    assert {name.split(".")[0] for name in others} <= STANDARD
