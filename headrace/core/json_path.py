"""A path into an event: `$.actor.id`, `$.items[0].price`, `$.labels["first name"]`.

A step that does not find its field, its index, or an object or array at all, finds nothing: the
value is null. tests/core/test_json_path.py checks what is read and what is refused.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

STEPS_MAX = 32
_NAME = r"[^\W\d][\w-]*"
_STEP = re.compile(
    rf"""\.(?P<name>{_NAME})|\[(?P<index>\d{{1,6}})\]"""
    r"""|(?:\."|\[")(?P<quoted>(?:[^"\\]|\\.)*)"\]?|\['(?P<single>[^'\\]*)'\]"""
)


@dataclass(frozen=True, slots=True)
class JsonPath:
    """The steps of a path: names of fields, and places in arrays. The first is a name.

    >>> JsonPath.parse("$.actor['first name'][0]").steps
    ('actor', 'first name', 0)
    """

    steps: tuple[str | int, ...]

    @staticmethod
    def parse(text: str) -> JsonPath:
        """Read a path; ValueError says what is wrong with it."""
        if not text.startswith("$"):
            raise ValueError(f"the path '{text}' does not begin with '$'")
        steps: list[str | int] = []
        at = 1
        while at < len(text):
            match = _STEP.match(text, at)
            if match is None or match[0].startswith('["') != match[0].endswith('"]'):
                raise ValueError(
                    f"the path '{text}' is not valid at '{text[at : at + 20]}'; "
                    "a step is .name, .\"name\", ['name'] or [0]"
                )
            steps.append(_step(match))
            at = match.end()
        if not steps or isinstance(steps[0], int):
            raise ValueError(f"the path '{text}' does not begin with a field, such as '$.name'")
        if len(steps) > STEPS_MAX:
            raise ValueError(f"the path '{text[:40]}…' has more than {STEPS_MAX} steps")
        return JsonPath(tuple(steps))

    @property
    def field(self) -> str:
        """The field of the event that the path begins with."""
        return str(self.steps[0])

    def within(self, value: Any) -> Any:
        """What the path finds in the value of that field; None if there is nothing."""
        for step in self.steps[1:]:
            if isinstance(step, int):
                value = value[step] if type(value) is list and step < len(value) else None
            else:
                value = value.get(step) if type(value) is dict else None
        return value

    def put(self, event: dict[str, Any], value: Any) -> None:
        """Put a value where the path finds it, with what is missing on the way.

        >>> event = {}
        >>> JsonPath.parse("$.a.b[1]").put(event, 5)
        >>> event
        {'a': {'b': [None, 5]}}
        """
        place: Any = event
        for step, after in zip(self.steps, (*self.steps[1:], None), strict=True):
            if isinstance(step, int):
                place.extend([None] * (step + 1 - len(place)))
            inner = place[step] if isinstance(step, int) else place.get(step)
            if inner is None or after is None:
                inner = value if after is None else [] if isinstance(after, int) else {}
            place[step] = inner
            place = inner

    def __str__(self) -> str:
        return "$" + "".join(map(_text, self.steps))


def _step(match: re.Match[str]) -> str | int:
    if match["index"] is not None:
        return int(match["index"])
    if match["quoted"] is not None:
        return str(json.loads(f'"{match["quoted"]}"'))
    return match["name"] if match["name"] is not None else match["single"]


def _text(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    plain = re.fullmatch(_NAME, step)
    return f".{step}" if plain else f"[{json.dumps(step, ensure_ascii=False)}]"
