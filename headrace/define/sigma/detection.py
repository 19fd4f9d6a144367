"""The selections of a detection, and its condition, as one tree.

A mapping holds if all of its fields do, a list if one of its items does. A text without a field is
a keyword: it may stand anywhere in the column that `keywords_in` names.
tests/define/sigma/test_sql.py checks what it means, test_values.py reads the refusals.
"""

from __future__ import annotations

from typing import Any

from headrace.define.sigma.condition import read_condition
from headrace.define.sigma.tree import Test, Tree, all_of, any_of
from headrace.define.sigma.values import parse_glob, tree_of

_CONDITION = "condition"


def detection_tree(detection: Any, keywords_in: str | None) -> Tree:
    """What an event must be; a ValueError says what is not understood."""
    if not isinstance(detection, dict):
        raise ValueError("'detection' must be a mapping of selections and a 'condition'")
    if "timeframe" in detection:
        raise ValueError("a timeframe is not supported; use the timespan of a correlation rule")
    selections = {
        str(name): _selection(str(name), said, keywords_in)
        for name, said in detection.items()
        if name != _CONDITION
    }
    conditions = detection.get(_CONDITION)
    found = conditions if isinstance(conditions, list) else [conditions]
    if not found or not all(isinstance(each, str) for each in found):
        raise ValueError("detection has no condition")
    return any_of([read_condition(str(each), selections) for each in found])


def _selection(name: str, said: Any, keywords_in: str | None) -> Tree:
    if isinstance(said, dict):
        if not said:
            raise ValueError(f"the selection '{name}' is empty")
        return all_of([_field(str(key), value, keywords_in) for key, value in said.items()])
    if isinstance(said, list):
        if not said:
            raise ValueError(f"the selection '{name}' is empty")
        return any_of([_selection(name, each, keywords_in) for each in said])
    if said is None:
        raise ValueError(f"the selection '{name}' is empty")
    return _keyword(said, keywords_in)


def _field(key: str, value: Any, keywords_in: str | None) -> Tree:
    field, *modifiers = key.split("|")
    if field:
        return tree_of(field, modifiers, value)
    if modifiers not in ([], ["all"]):
        raise ValueError(
            f"the modifier '{modifiers[0]}' is not supported for keywords; only 'all' is"
        )
    words = value if isinstance(value, list) else [value]
    found = [_keyword(word, keywords_in) for word in words]
    return all_of(found) if modifiers else any_of(found)


def _keyword(word: Any, keywords_in: str | None) -> Tree:
    if not isinstance(word, str | int | float) or isinstance(word, bool):
        raise ValueError("a keyword must be a string or a number")
    if keywords_in is None:
        raise ValueError(f"'{word}' is a keyword; name the column to search with --keywords")
    return Test(keywords_in, parse_glob(str(word), before=True, after=True))
