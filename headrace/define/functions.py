"""Functions that a project's Python files give to its SQL.

A function works on whole columns: Arrow arrays or pandas series in, one of the same length out. It
must give the same result for the same input, since batch and speed both call it.
tests/spark/test_functions.py checks loading and refusals.
"""

from __future__ import annotations

import hashlib
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from headrace.core.errors import BadDefinition, BadProject
from headrace.core.origin import Origin
from headrace.core.schema import Type

F = TypeVar("F", bound=Callable[..., Any])
MARK = "__headrace_function__"
MODULE = "headrace_project_functions_"  # a project file's module is this and a hash of its text


@dataclass(frozen=True, slots=True)
class FunctionDefinition:
    """One function: its SQL name, its result and how it takes its columns."""

    name: str
    takes: tuple[Type, ...]
    returns: Type
    kind: str  # "arrow" or "pandas"
    body: Callable[..., Any]

    @property
    def origin(self) -> Origin:
        code = getattr(self.body, "__code__", None)
        return Origin("functions.py", code.co_firstlineno if code else 1)


def function(
    *, takes: list[str], returns: str, kind: str = "arrow", name: str | None = None
) -> Callable[[F], F]:
    """Register a function for SQL.

    >>> import pyarrow.compute as pc
    >>> @function(takes=["STRING"], returns="STRING")
    ... def shout(text):
    ...     return pc.utf8_upper(text)
    """
    if kind not in {"arrow", "pandas"}:
        raise BadDefinition(f"the kind of a function must be 'arrow' or 'pandas', not {kind!r}")
    types = tuple(Type.parse(text) for text in takes)
    result = Type.parse(returns)

    def mark(body: F) -> F:
        definition = FunctionDefinition(name or body.__name__, types, result, kind, body)
        setattr(body, MARK, definition)
        return body

    return mark


def load_functions(path: Path) -> tuple[FunctionDefinition, ...]:
    """The functions that a project's Python file gives to SQL, in the order of the file."""
    found: dict[str, FunctionDefinition] = {}
    for definition in _marked(load_module(path)):
        other = found.setdefault(definition.name.lower(), definition)
        if other is not definition:
            raise BadDefinition(
                f"the function '{definition.name}' is defined twice",
                hint="give one of them another name: @function(name=…).",
                origin=definition.origin,
            )
        if not definition.name.isidentifier():
            raise BadDefinition(
                f"'{definition.name}' is not a valid function name", origin=definition.origin
            )
    return tuple(found.values())


def load_module(path: Path) -> ModuleType:
    """A project's Python file as a module."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadProject(
            f"{path.name} cannot be read: {error}", origin=Origin(path.name, 1)
        ) from error
    # The name follows the text, so that a changed file is a new module and not a stale one.
    name = MODULE + hashlib.sha256(f"{path}\0{text}".encode()).hexdigest()[:12]
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    try:
        # Not through the import system: that would write a .pyc into the project.
        exec(compile(text, str(path), "exec"), module.__dict__)
    except Exception as error:
        del sys.modules[name]
        kind = type(error).__name__
        message = f"{path.name} cannot be loaded: {kind}: {getattr(error, 'msg', error)}"
        raise BadProject(message, origin=Origin(path.name, _line(error, path))) from error
    return module


def _marked(module: ModuleType) -> list[FunctionDefinition]:
    # The same function under two Python names is one function.
    bodies = {id(value): value for value in vars(module).values() if hasattr(value, MARK)}
    return [getattr(body, MARK) for body in bodies.values()]


def _line(error: Exception, path: Path) -> int:
    """The line of `path` in the traceback, however deep below it the error was raised."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno or 1
    frames = traceback.extract_tb(error.__traceback__)
    return next((f.lineno or 1 for f in reversed(frames) if f.filename == str(path)), 1)
