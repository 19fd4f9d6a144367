"""Views or streams by name: as a mapping, as attributes, and with Tab completion.

`client.views["visitors"]` and `client.views.visitors` are the same. An unknown name is an error
with the most similar one as a hint. tests/client/test_client.py checks the completion.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from headrace.core.errors import NotFound

T = TypeVar("T")


class Namespace(Mapping[str, T], Generic[T]):
    """A mapping from names to objects, also as attributes."""

    def __init__(self, noun: str, names: list[str], make: Callable[[str], T]) -> None:
        self._noun, self._names, self._make = noun, names, make

    def __getitem__(self, name: str) -> T:
        if name in self._names:
            return self._make(name)
        close = difflib.get_close_matches(name, self._names, 1)
        known = ", ".join(self._names) or "none"
        hint = f"did you mean '{close[0]}'?" if close else f"available {self._noun}s: {known}."
        raise NotFound(f"there is no {self._noun} '{name}'", hint=hint)

    def __getattr__(self, name: str) -> T:
        # Tools probe every object for names with an underscore.
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *filter(str.isidentifier, self._names)]

    def _ipython_key_completions_(self) -> list[str]:
        return self._names

    def __repr__(self) -> str:
        return f"{self._noun}s: {', '.join(self._names) or 'none'}"
