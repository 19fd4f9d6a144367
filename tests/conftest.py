"""Fixtures of all tests: one Spark session for each worker, started as the product starts it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from headrace.define.settings import SparkSettings

# A worker is given the width of a terminal, and the command line would keep to it.
os.environ.pop("COLUMNS", None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Two workers share the tests: a file stays with one of them, a story too, and whatever starts
    projects of its own.
    """
    for item in items:
        given = item.callspec.params if hasattr(item, "callspec") else {}
        story = given.get("path") if item.path.parent.name == "transcripts" else None
        group = "run" if item.path.parent.name == "run" else str(item.path)
        item.add_marker(pytest.mark.xdist_group(story.stem if story else group))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The shared session; a test leaves no view, setting or query behind in it."""
    from headrace.spark.session import start_session, stop_session

    work = tmp_path_factory.mktemp("spark")
    session = start_session(SparkSettings(), app_name="tests", work=work)
    yield session
    stop_session(session)
