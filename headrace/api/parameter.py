"""A parameter of a route, and the parsing of numbers and truth values.

A value that is not one, or out of its bounds, is refused.
tests/api/test_routes.py and tests/api/test_resources.py read the messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from headrace.core.errors import BadRequest

LIMIT_MAX = 10_000
Limit = Annotated[int, msgspec.Meta(ge=1, le=LIMIT_MAX)]
NUMBER_MAX = 2**53  # the largest exact integer of JavaScript
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    where: Literal["path", "query", "header"]
    type: Any
    meaning: str


def number_of(name: str, text: str, least: int = 0, most: int = NUMBER_MAX) -> int:
    """An integer of a request; BadRequest if the text is not one."""
    # The length first: Python refuses to parse thousands of digits.
    if text.isascii() and text.isdecimal() and len(text) <= 16 and least <= int(text) <= most:
        return int(text)
    span = f"from {least} to {most}" if most < NUMBER_MAX else f"from {least} on"
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    raise BadRequest(f"{name} must be a whole number {span}, not '{shown}'")


def flag_of(name: str, text: str) -> bool:
    """A truth value of a request; BadRequest if the text is not one."""
    if text not in ("true", "false"):
        raise BadRequest(f"{name} must be true or false, not '{text[:_SHOWN]}'")
    return text == "true"


def limit_of(text: str | None) -> int | None:
    """The value of the parameter limit, if it is given."""
    return None if text is None else number_of("limit", text, 1, LIMIT_MAX)
