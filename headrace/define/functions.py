"""Functions that a project's Python files give to its SQL.

A function works on whole columns: Arrow arrays or pandas series in, one of the same length out. It must
give the same result for the same input, since batch and speed both call it.
tests/define/test_functions.py checks registration and refusals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from headrace.core.errors import BadDefinition
from headrace.core.schema import Type

F = TypeVar("F", bound=Callable[..., Any])
MARK = "__headrace_function__"


@dataclass(frozen=True, slots=True)
class FunctionDefinition:
    """One function: its SQL name, its result and how it takes its columns."""

    name: str
    takes: tuple[Type, ...]
    returns: Type
    kind: str  # "arrow" or "pandas"
    body: Callable[..., Any]


def function(
    *, takes: list[str], returns: str, kind: str = "arrow", name: str | None = None
) -> Callable[[F], F]:
    """Give a function to SQL.

    >>> import pyarrow.compute as pc
    >>> @function(takes=["STRING"], returns="STRING")
    ... def shout(text):
    ...     return pc.utf8_upper(text)
    """
    if kind not in {"arrow", "pandas"}:
        raise BadDefinition(f"a function is of kind 'arrow' or 'pandas', not {kind!r}")
    types = tuple(Type.parse(text) for text in takes)
    result = Type.parse(returns)

    def mark(body: F) -> F:
        definition = FunctionDefinition(name or body.__name__, types, result, kind, body)
        setattr(body, MARK, definition)
        return body

    return mark
