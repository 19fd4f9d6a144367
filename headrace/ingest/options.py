"""The options of a connector: one frozen dataclass each, which is also their documentation.

Every option has a name, a default as a definition writes it, a meaning, and a function that reads
its text. Reading options opens nothing, so a plan can refuse a wrong one.
tests/ingest/test_connector.py reads each refusal.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, field, fields
from typing import Any, TypeVar

from headrace.core.errors import BadDefinition
from headrace.define.definitions import StreamDefinition

T = TypeVar("T")
Read = Callable[[str], Any]  # raises ValueError with the words that end "… is X, but must be"


def option(default: str | None, meaning: str, read: Read) -> Any:
    """A field of an options class; without a default it must be given."""
    meta = {"text": default, "meaning": meaning, "read": read}
    return field(default=MISSING if default is None else read(default), metadata=meta)


def documented(kind: type[Any]) -> Iterator[tuple[str, str | None, str]]:
    """Each option as (name, default as a definition writes it, meaning)."""
    for item in fields(kind):
        yield item.name, item.metadata["text"], item.metadata["meaning"]


def read_options(
    definition: StreamDefinition, kind: type[T], given: Mapping[str, str] | None = None
) -> T:
    """The options of this stream's connector, each checked.

    `given` is what to read where some of the definition's options are read elsewhere.
    """
    known = {item.name: item for item in fields(kind)}  # type: ignore[arg-type]
    texts = {n.lower(): v for n, v in (definition.options if given is None else given).items()}
    for name in texts:
        if name not in known:
            raise unknown_option(definition, name, list(known))
    for name, item in known.items():
        if item.default is MISSING and name not in texts:
            raise _missing(definition, item)
    return kind(**{name: _read(definition, known[name], text) for name, text in texts.items()})


def unknown_option(definition: StreamDefinition, name: str, known: list[str]) -> BadDefinition:
    close = difflib.get_close_matches(name, known, 1)
    listed = f"available options: {', '.join(known)}." if known else "it has no options."
    return BadDefinition(
        f"the source '{definition.source}' of stream '{definition.name}' has no option '{name}'",
        hint=f"did you mean '{close[0]}'? {listed}" if close else listed,
        origin=definition.origin,
    )


def bad_value(
    definition: StreamDefinition, name: str, text: str, must_be: str, hint: str | None = None
) -> BadDefinition:
    return BadDefinition(
        f"option '{name}' of stream '{definition.name}' must be {must_be}, got '{text}'",
        hint=hint,
        origin=definition.origin,
    )


def _read(definition: StreamDefinition, item: Field[Any], text: str) -> Any:
    try:
        return item.metadata["read"](text)
    except ValueError as error:
        default = item.metadata["text"]
        hint = f"meaning of '{item.name}': {item.metadata['meaning']}"
        hint += f" (default '{default}')." if default is not None else "."
        raise bad_value(definition, item.name, text, str(error), hint) from error


def _missing(definition: StreamDefinition, item: Field[Any]) -> BadDefinition:
    return BadDefinition(
        f"the source '{definition.source}' of stream '{definition.name}' requires the option "
        f"'{item.name}'",
        hint=f"meaning of '{item.name}': {item.metadata['meaning']}.",
        origin=definition.origin,
    )
