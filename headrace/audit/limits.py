"""A timeout for DuckDB: a longer statement is interrupted and raised as LimitReached."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headrace.core.errors import LimitReached


@contextmanager
def within_time(connection: Any, seconds_max: float) -> Iterator[None]:
    """Interrupt the connection after the timeout."""
    import duckdb

    timer = threading.Timer(seconds_max, connection.interrupt)
    timer.start()
    try:
        yield
    except duckdb.InterruptException as error:
        raise search_timeout(seconds_max) from error
    finally:
        timer.cancel()


def search_timeout(seconds_max: float) -> LimitReached:
    return LimitReached(
        f"the search for the events timed out after {seconds_max:g} seconds",
        hint="raise query.seconds_max.",
    )
