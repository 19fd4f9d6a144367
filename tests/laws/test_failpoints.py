"""Law 3, ack, holds at every failpoint of the code: some test kills a process at each.

The sources are read, and nothing is run. A test kills at a name with a count ("epoch.started:3"),
or at a bare name in a file that hands a `failpoint` to somebody.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace

CODE = Path(headrace.__file__).parent
TESTS = Path(__file__).parents[1]
# These name failpoints without killing the code that has them.
NOT_KILLING = {Path(__file__), TESTS / "core/test_failpoint.py"}
_POINT = re.compile(r"([a-z]+\.[a-z]+)(:[0-9]+)?")
_KILLED = re.compile(r"[\"'][a-z]+\.[a-z]+:[0-9]+[\"']")


def nodes(path: Path) -> list[ast.AST]:
    """The parts of a file that speaks of failpoints; parsing all files would take seconds."""
    text = path.read_text("utf-8")
    return list(ast.walk(ast.parse(text))) if "failpoint" in text or _KILLED.search(text) else []


def in_the_code() -> Iterator[str]:
    """The name of each call of `failpoint`."""
    for path in sorted(CODE.rglob("*.py")):
        for node in nodes(path):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "failpoint":
                [name] = node.args
                assert isinstance(name, ast.Constant), f"a failpoint of {path} has no literal name"
                yield str(name.value)


def in_the_tests() -> Iterator[tuple[str, str, bool]]:
    """Strings that look like the name of a failpoint, with their file; whether one has a count."""
    for path in sorted(set(TESTS.rglob("*.py")) - NOT_KILLING):
        found = nodes(path)
        kills = any("failpoint" in (getattr(n, "arg", ""), getattr(n, "id", "")) for n in found)
        for node in found:
            text = node.value if isinstance(node, ast.Constant) else None
            point = _POINT.fullmatch(text) if isinstance(text, str) else None
            if point and (kills or point[2]):
                yield point[1], str(path.relative_to(TESTS)), bool(point[2])


FAILPOINTS = list(in_the_code())
NAMED = list(in_the_tests())


def test_a_failpoint_is_one_place() -> None:
    assert len(FAILPOINTS) > 20
    assert len(set(FAILPOINTS)) == len(FAILPOINTS)


@pytest.mark.parametrize("name", FAILPOINTS)
def test_some_test_kills_at_the_failpoint(name: str) -> None:
    assert name in {named for named, _, _ in NAMED}, f"no test kills a process at {name}"


def test_what_tests_kill_at_is_in_the_code() -> None:
    # A name with a count may also be a line of a file, such as shop.sql:3.
    groups = {name.partition(".")[0] for name in FAILPOINTS}
    unknown = [
        (name, file)
        for name, file, counted in NAMED
        if counted and name.partition(".")[0] in groups and name not in FAILPOINTS
    ]
    assert unknown == []
