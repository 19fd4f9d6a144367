"""Headrace: define a view once, in SQL; it is kept exact over all history and fresh to the second.

>>> import headrace
>>> headrace.__version__
'0.1.0'
"""

from typing import Any

from headrace.core.version import __version__
from headrace.define.actions import action
from headrace.define.functions import function
from headrace.define.processors import processor

__all__ = ["__version__", "action", "connect", "function", "processor", "subscribe"]


def __getattr__(name: str) -> Any:
    # Functions of a project are read in Spark's workers, which need no HTTP.
    if name == "connect":
        from headrace.client.client import connect

        return connect
    if name == "subscribe":
        from headrace.api.subscribe import subscribe

        return subscribe
    raise AttributeError(f"module 'headrace' has no attribute '{name}'")
