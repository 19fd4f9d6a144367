"""Fixtures of all tests: one Spark session for the whole run, started as the product starts it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.define.settings import SparkSettings


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The shared session; a test leaves no view, setting or query behind in it."""
    from headrace.spark.session import start_session, stop_session

    work = tmp_path_factory.mktemp("spark")
    session = start_session(SparkSettings(), app_name="tests", work=work)
    yield session
    stop_session(session)
