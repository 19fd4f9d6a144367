"""How settings are declared and read: a dataclass of sections, each a dataclass of settings.

A setting has its default, its meaning, whether it is a duration, its least value, the words that it
may be and the form of its text, or of each in a list; the parser, the errors and the documentation
use the same fields. tests/define/test_settings.py checks each refusal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import MISSING, Field, field, fields, is_dataclass, replace
from typing import Any, NamedTuple, TypeVar, cast

from headrace.core.errors import BadSetting, did_you_mean
from headrace.core.origin import Origin
from headrace.core.time import duration_us

Documented = tuple[str, Any, str]
T = TypeVar("T")


class TextForm(NamedTuple):
    """What a text must match, and the words for it; a text alone may also be empty."""

    pattern: str
    words: str


def setting(
    default: Any,
    meaning: str,
    *,
    duration: bool = False,
    least: float | None = None,
    among: tuple[str, ...] = (),
    form: TextForm | None = None,
) -> Any:
    """A field of a dataclass of settings: its default as the file writes it, and its meaning."""
    meta = {
        "meaning": meaning, "duration": duration, "least": least, "among": among, "text": default,
        "form": form,
    }  # fmt: skip
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=meta)
    if isinstance(default, list):
        return field(default=tuple(default), metadata=meta)
    return field(default=duration_us(default) if duration else default, metadata=meta)


def key_of(item: Field[Any]) -> str:
    """The key in the file: durations are text there, so their unit is not in the name."""
    return item.name.removesuffix("_us") if item.metadata.get("duration") else item.name


def documented_of(kind: type) -> Iterator[Documented]:
    """Each setting as (dotted key, default as the file writes it, meaning)."""
    for item in fields(kind):
        if item.default_factory is not MISSING and is_dataclass(item.default_factory):
            for inner in fields(item.default_factory):
                text, meaning = inner.metadata["text"], inner.metadata["meaning"]
                said = str(text).lower() if isinstance(text, bool) else text
                yield f"{item.name}.{key_of(inner)}", said, meaning
        else:
            yield item.name, item.metadata["text"], item.metadata["meaning"]


def read_into(settings: T, table: dict[str, Any], origin: Origin) -> T:
    """The settings with the values of a TOML file's tables, each checked."""
    current: Any = settings
    known = {item.name: item for item in fields(current)}
    for key, value in table.items():
        if key not in known:
            raise _unknown(key, list(known), origin)
        before = getattr(current, key)
        if not is_dataclass(before):
            found = _checked(known[key], key, value, origin)
        elif not isinstance(value, dict):
            raise BadSetting(f"[{key}] must be a table of settings, not a value", origin=origin)
        else:
            found = _read_section(before, key, value, origin)
        current = replace(current, **{key: found})
    return cast(T, current)


def _read_section(section: Any, name: str, table: dict[str, Any], origin: Origin) -> Any:
    known = {key_of(item): item for item in fields(section)}
    for key, value in table.items():
        if key not in known:
            raise _unknown(f"{name}.{key}", [f"{name}.{k}" for k in known], origin)
        checked = _checked(known[key], f"{name}.{key}", value, origin)
        section = replace(section, **{known[key].name: checked})
    return section


def _checked(item: Field[Any], key: str, value: Any, origin: Origin) -> Any:
    if item.metadata.get("duration"):
        try:
            return duration_us(value)
        except (ValueError, TypeError) as error:
            hint = f'write {key.rpartition(".")[2]} = "{item.metadata["text"]}"'
            raise BadSetting(
                f"{key} is not a duration: {value!r}", hint=hint, origin=origin
            ) from error
    if isinstance(item.metadata["text"], dict) and isinstance(value, dict):
        return {str(k): str(v).lower() if isinstance(v, bool) else str(v) for k, v in value.items()}
    expected = type(item.metadata["text"])
    if expected is list and isinstance(value, list) and all(type(v) is str for v in value):
        return _checked_texts(item, key, value, origin)
    if expected is float and type(value) is int:
        value = float(value)
    if type(value) is not expected or expected is list:
        words = {
            int: "a whole number", float: "a number", str: "a string", dict: "a table",
            bool: "true or false", list: "a list of strings",
        }  # fmt: skip
        raise BadSetting(f"{key} must be {words[expected]}, not {value!r}", origin=origin)
    among = item.metadata.get("among")
    if among and value not in among:
        raise BadSetting(f"{key} must be one of {', '.join(among)}, not {value!r}", origin=origin)
    form: TextForm | None = item.metadata.get("form")
    if form is not None and value and not re.fullmatch(form.pattern, value, re.IGNORECASE):
        raise BadSetting(f"{key} must be {form.words}", origin=origin)
    least = item.metadata.get("least")
    if least is not None and value < least:
        raise BadSetting(f"{key} must be at least {least}, not {value!r}", origin=origin)
    return value


def _checked_texts(item: Field[Any], key: str, texts: list[str], origin: Origin) -> tuple[str, ...]:
    form: TextForm | None = item.metadata.get("form")
    for text in texts:
        if form is not None and not re.fullmatch(form.pattern, text, re.IGNORECASE):
            raise BadSetting(f"{key} must contain {form.words}, not {text!r}", origin=origin)
    return tuple(texts)


def _unknown(key: str, known: list[str], origin: Origin) -> BadSetting:
    hint = did_you_mean(key, known, f"available settings: {', '.join(known)}.")
    return BadSetting(f"there is no setting '{key}'", hint=hint, origin=origin)
