"""The garbage collector, paused where many rows are made that have no cycles.

It would traverse all of them again whenever some thousand more are there: a third of the processor
time of a search. References alone free them. tests/carry/test_match.py checks that it is on again.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """
    >>> with collector_paused():
    ...     gc.isenabled()
    False
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
