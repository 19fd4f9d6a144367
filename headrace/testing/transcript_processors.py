"""The processors of a transcript: Python text with classes under `@processor("n BIGINT, …")`.

The text is what a project has in functions.py, without its import; it is run here with a
`processor` that only registers the class and the names of its columns.
tests/testing/test_processors.py checks it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.testing.declarations import columns_of
from headrace.testing.reference import ReferenceProcessor


def processors_of(text: str) -> dict[str, ReferenceProcessor]:
    """The processors of a text by the names of their classes.

    >>> found = processors_of('@processor("user STRING, n BIGINT")\\nclass Visits: ...')
    >>> found["Visits"].columns
    ('user', 'n')
    """
    found: dict[str, ReferenceProcessor] = {}

    def processor(columns: str) -> Callable[[type[Any]], type[Any]]:
        def remember(made: type[Any]) -> type[Any]:
            found[made.__name__] = ReferenceProcessor(
                tuple(c.name for c in columns_of(columns)), made
            )
            return made

        return remember

    exec(compile(text, "processors", "exec"), {"processor": processor, "__name__": "processors"})
    return found
