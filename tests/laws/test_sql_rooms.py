"""SQL is executed in the rooms that own a database or an engine, and in no other.

So the tables of the store can change without a search through the whole package, and a value from a
request is put into SQL only where its type is known. Which rooms reach Spark is an import contract.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace

ROOT = Path(headrace.__file__).parent
OWNERS = {"serving", "access", "server", "audit", "certified", "kernel"}
# The tables of the three databases are migrated by the same functions.
FILES = {"core/migrations.py"}
METHODS = {"execute", "executemany", "executescript"}
DUCKDB = ("connection.sql", "cursor.sql")  # DuckDB's own method; Spark has one of that name
# These execute something else.
OTHERS = {"executor.execute(request)"}


def executions(text: str) -> Iterator[str]:
    """The calls that execute a statement."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            said, method = ast.unparse(node), ast.unparse(node.func)
            if (node.func.attr in METHODS or method.endswith(DUCKDB)) and said not in OTHERS:
                yield said


def found_in(path: Path) -> list[str]:
    return list(executions(path.read_text("utf-8")))


def rooms() -> list[str]:
    return sorted(path.name for path in ROOT.iterdir() if (path / "__init__.py").exists())


@pytest.mark.parametrize("room", sorted(set(rooms()) - OWNERS))
def test_a_room_without_a_database_or_an_engine_executes_no_sql(room: str) -> None:
    names = {path: str(path.relative_to(ROOT)) for path in (ROOT / room).rglob("*.py")}
    assert {
        name: calls
        for path, name in names.items()
        if name not in FILES and (calls := found_in(path))
    } == {}


@pytest.mark.parametrize("room", sorted(OWNERS))
def test_the_rooms_that_own_a_database_or_an_engine_do(room: str) -> None:
    assert any(found_in(path) for path in (ROOT / room).rglob("*.py"))


def test_a_statement_is_found_wherever_it_is_executed() -> None:
    text = (
        "def f(store):\n    with store.read() as db:\n        db.execute('SELECT 1').fetchall()\n"
    )
    text += "    return self.connection.sql('FROM t').fetchall()"
    assert list(executions(text)) == ["self.connection.sql('FROM t')", "db.execute('SELECT 1')"]
