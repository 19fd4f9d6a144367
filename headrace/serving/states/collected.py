"""Lists with a limit, as JSON: {"type": …, "limit": n, "items": […]}.

A list holds up to its limit and one more, which shows that it was cut. A collected list has
[{"s": place, "v": value}] in the order of the log, a set its values in their order. Both keep the
first items in that order, so the result does not depend on how events were grouped. Values are JSON
as in core/storage.py, of the type in the state.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from headrace.core.schema import Type
from headrace.core.storage import Storage

Items = list[Any]
Order = Callable[[Any], Any]


def merge_lists(states: Sequence[str]) -> str:
    def ordered(items: Items, order: Order) -> Items:
        return sorted(items, key=lambda item: (item["s"], order(item["v"])))

    return _merged(states, ordered)


def merge_sets(states: Sequence[str]) -> str:
    def ordered(items: Items, order: Order) -> Items:
        different = {json.dumps(item): item for item in items}
        return sorted(different.values(), key=order)

    return _merged(states, ordered)


def _merged(states: Sequence[str], ordered: Callable[[Items, Order], Items]) -> str:
    read = [json.loads(state) for state in states]
    items = [item for state in read for item in state["items"]]
    storage = Storage(Type.of(read[0]["type"]))
    kept = ordered(items, lambda part: _rank(storage.read_part(part)))
    limit: int = read[0]["limit"]
    return json.dumps(read[0] | {"items": kept[: limit + 1]})


def _rank(value: Any) -> Any:
    """The sort key of a value in Spark's order: NULL first, NaN last, also within lists and
    objects.
    """
    if value is None:
        return (0,)
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    if isinstance(value, dict):
        value = list(value.values())
    return (1, [_rank(part) for part in value] if isinstance(value, list | tuple) else value)


def show_list(state: str) -> str:
    return _shown(state, lambda item: item["v"])


def show_set(state: str) -> str:
    return _shown(state, lambda item: item)


def _shown(state: str, value: Callable[[Any], Any]) -> str:
    """The list as JSON."""
    read = json.loads(state)
    return json.dumps([value(item) for item in read["items"][: read["limit"]]])


def cut(state: str) -> bool:
    """Whether the list was cut at its limit."""
    read = json.loads(state)
    return bool(len(read["items"]) > read["limit"])


def same(a: str, b: str) -> bool:
    return bool(json.loads(a) == json.loads(b))
