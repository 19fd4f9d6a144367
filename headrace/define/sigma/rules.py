"""Parses a Sigma document: a rule on single events, or a correlation of such rules.

A ValueError says what is not understood; `script.py` adds the rule's title and place.
tests/define/sigma/test_rules.py reads the refusals.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from headrace.core.origin import Origin
from headrace.core.rule import Severity
from headrace.core.time import DAY, HOUR, MINUTE, SECOND
from headrace.define.sigma.detection import detection_tree
from headrace.define.sigma.documents import SigmaDocument
from headrace.define.sigma.tree import Tree
from headrace.define.thresholds import LEAST_MAX

TYPES = ("event_count", "value_count", "temporal", "temporal_ordered")
_UNITS = {"s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}
_MORE = {"gte": ">=", "gt": ">"}


@dataclass(frozen=True, slots=True)
class SigmaHeader:
    """The header of a Sigma document; `keys` are its name and id, by which others refer."""

    title: str
    name: str
    keys: tuple[str, ...]
    level: Severity | None
    logsource: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class EventRule:
    """A rule that matches single events."""

    about: SigmaHeader
    tree: Tree
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Correlation:
    """A rule that correlates the events of other rules."""

    about: SigmaHeader
    type: str
    rules: tuple[str, ...]
    group_by: tuple[str, ...]
    within_us: int
    operator: str  # >= or >, of the counts; empty for the others
    least: int
    field: str | None
    aliases: dict[str, dict[str, str]]
    generate: bool


def title_of(document: SigmaDocument) -> str:
    """The title on one line, or what else there is."""
    said = (document.fields.get(key) for key in ("title", "name", "id"))
    return " ".join(str(next((each for each in said if each), "without a title")).split())


def references(document: SigmaDocument) -> tuple[str, ...]:
    """What a correlation refers to, also if it is not understood otherwise."""
    inner = document.fields.get("correlation")
    return _texts(inner.get("rules")) if isinstance(inner, dict) else ()


def read_event_rule(document: SigmaDocument, keywords_in: str | None) -> EventRule:
    fields = document.fields
    if "detection" not in fields:
        said = next((key for key in ("action", "filter") if key in fields), None)
        raise ValueError(
            f"documents with '{said}' are not supported" if said else "it has no detection"
        )
    tree = detection_tree(fields["detection"], keywords_in)
    return EventRule(_about(document), tree, _texts(fields.get("fields")))


def read_correlation(document: SigmaDocument) -> Correlation:
    said = document.fields["correlation"]
    if not isinstance(said, dict):
        raise ValueError("correlation must be a mapping")
    type = said.get("type")
    if type not in TYPES:
        raise ValueError(
            f"the correlation type '{type}' is not supported; use one of {', '.join(TYPES)}"
        )
    rules = _texts(said.get("rules"))
    if not rules:
        raise ValueError("the correlation has no rules")
    counts = type in ("event_count", "value_count")
    operator, least = _threshold(said.get("condition")) if counts else ("", 0)
    if not counts:
        _all_of_them(said.get("condition"), len(set(rules)))
    return Correlation(
        _about(document), type, rules, _texts(said.get("group-by")),
        _timespan(said.get("timespan")), operator, least,
        _counted(said) if type == "value_count" else None, _aliases(said.get("aliases")),
        said.get("generate", document.fields.get("generate")) is True,
    )  # fmt: skip


def _about(document: SigmaDocument) -> SigmaHeader:
    fields, title = document.fields, title_of(document)
    keys = tuple(str(fields[key]) for key in ("name", "id") if fields.get(key))
    source = fields.get("logsource")
    words = [f"{k} {v}" for k, v in source.items()] if isinstance(source, dict) else []
    return SigmaHeader(
        title, str(fields.get("name") or title), keys, _level(fields.get("level")),
        " ".join(", ".join(words).split()), document.origin,
    )  # fmt: skip


def _level(said: Any) -> Severity | None:
    if said is None:
        return None
    word = {"informational": "info"}.get(str(said).lower(), str(said).lower())
    if word not in set(Severity):
        raise ValueError(f"the level '{said}' is not valid")
    return Severity(word)


def _texts(said: Any) -> tuple[str, ...]:
    values = said if isinstance(said, list) else [] if said is None else [said]
    return tuple(str(value) for value in values)


def _threshold(said: Any) -> tuple[str, int]:
    numbers = {k: v for k, v in said.items() if k != "field"} if isinstance(said, dict) else {}
    if not numbers:
        raise ValueError("the correlation has no condition such as 'gte: 10'")
    for word in numbers:
        if word not in _MORE:
            raise ValueError(
                f"the condition has '{word}'; only 'gte' and 'gt' are supported, "
                "because a low count may still rise"
            )
    if len(numbers) > 1:
        raise ValueError("the condition has both 'gte' and 'gt'")
    [(word, least)] = numbers.items()
    if not isinstance(least, int) or isinstance(least, bool):
        raise ValueError(f"the condition '{word}: {least}' requires a whole number")
    if not 1 <= least + (word == "gt") <= LEAST_MAX:
        raise ValueError(
            f"the condition '{word}: {least}' requires a count from 1 to {LEAST_MAX:,}"
        )
    return _MORE[word], least


def _all_of_them(said: Any, many: int) -> None:
    if said not in (None, {"gte": many}, {"eq": many}):
        raise ValueError("a temporal correlation with its own condition is not supported")


def _counted(said: dict[str, Any]) -> str:
    found = said["condition"].get("field") or said.get("field")
    if not isinstance(found, str):
        raise ValueError("value_count requires exactly one 'field' in the condition")
    return found


def _timespan(said: Any) -> int:
    found = re.fullmatch(r"([1-9]\d{0,5})([smhdw])", str(said or ""))
    if not found:
        raise ValueError(f"the timespan '{said}' is not a duration such as 30s, 5m, 1h, 7d or 2w")
    return int(found[1]) * _UNITS[found[2]]


def _aliases(said: Any) -> dict[str, dict[str, str]]:
    if said is None:
        return {}
    if not isinstance(said, dict) or not all(isinstance(each, dict) for each in said.values()):
        raise ValueError("aliases must map each name to rules and their fields")
    return {str(name): {str(k): str(v) for k, v in each.items()} for name, each in said.items()}
