"""Lists with a limit, as JSON: {"limit": n, "items": […]}.

A list holds up to its limit and one more, so that it is known when it was cut. A collected list has
[{"s": place, "v": value}] in the order of the log, a set its values in their order. Both keep the
first in that order, so it does not matter how the events were cut.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from headrace.core.stored_value import shown

Items = list[Any]


def merge_lists(states: Sequence[str]) -> str:
    return _merged(states, lambda items: sorted(items, key=_place))


def merge_sets(states: Sequence[str]) -> str:
    return _merged(states, lambda items: sorted(set(items), key=_value))


def _merged(states: Sequence[str], ordered: Callable[[Items], Items]) -> str:
    read = [json.loads(state) for state in states]
    limit = read[0]["limit"]
    items = ordered([item for state in read for item in state["items"]])
    return json.dumps({"limit": limit, "items": items[: limit + 1]})


def _place(item: dict[str, Any]) -> tuple[Any, ...]:
    return item["s"], *_value(item["v"])


def _value(value: Any) -> tuple[bool, Any]:
    # JSON has no NaN or infinity, so Spark writes them as texts: after every number.
    return isinstance(value, str), value


def show_list(state: str, type: str) -> str:
    return _shown(state, lambda item: shown(type, item["v"]))


def show_set(state: str, type: str) -> str:
    return _shown(state, lambda item: shown(type, item))


def _shown(state: str, value: Callable[[Any], Any]) -> str:
    """The list as JSON; one that was cut is {"cut": […]}, which the answer tells."""
    read = json.loads(state)
    values = [value(item) for item in read["items"][: read["limit"]]]
    return json.dumps({"cut": values} if len(read["items"]) > read["limit"] else values)


def same(a: str, b: str) -> bool:
    return bool(json.loads(a) == json.loads(b))
