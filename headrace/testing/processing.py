"""The processors of a transcript: Python text with classes under `@processor("n BIGINT, …")`.

The text is what a project has in functions.py, without its import; it is run here with a
`processor` that does nothing but remember the class and the names of its columns.
tests/testing/test_processors.py checks it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.testing.declared import columns_of
from headrace.testing.reference import Processor


def processors_of(text: str) -> dict[str, Processor]:
    """The processors of a text by the names of their classes.

    >>> found = processors_of('@processor("user STRING, n BIGINT")\\nclass Visits: ...')
    >>> found["Visits"].columns
    ('user', 'n')
    """
    found: dict[str, Processor] = {}

    def processor(columns: str) -> Callable[[type[Any]], type[Any]]:
        def remember(made: type[Any]) -> type[Any]:
            found[made.__name__] = Processor(tuple(c.name for c in columns_of(columns)), made)
            return made

        return remember

    exec(compile(text, "processors", "exec"), {"processor": processor, "__name__": "processors"})
    return found
