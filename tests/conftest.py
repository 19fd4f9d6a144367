"""Fixtures of all tests: one Spark session for each worker, started as the product starts it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from xdist.scheduler.loadscope import LoadScopeScheduling

from headrace.define.settings import SparkSettings

# A worker is given the width of a terminal, and the command line would keep to it.
os.environ.pop("COLUMNS", None)
STORIES = {path.stem for path in (Path(__file__).parent / "transcripts").glob("*.yaml")}


class Groups(LoadScopeScheduling):
    """Two workers share the tests: a file stays with one of them, a story too, and whatever starts
    projects of its own.
    """

    def _split_scope(self, nodeid: str) -> str:
        path, _, rest = nodeid.partition("::")
        folder = Path(path).parent.name
        said = rest.partition("[")[2].removesuffix("]").split("-")
        story = next((part for part in said if part in STORIES), None)
        if folder == "transcripts" and story:
            return story
        return "run" if folder == "run" else path


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Groups:
    return Groups(config, log)


@pytest.fixture(autouse=True)
def _said_as_before() -> Iterator[None]:
    """Where a command has its lines go is not where the next test looks for them."""
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The shared session; a test leaves no view, setting or query behind in it."""
    from headrace.spark.session import start_session, stop_session

    work = tmp_path_factory.mktemp("spark")
    session = start_session(SparkSettings(), app_name="tests", work=work)
    yield session
    stop_session(session)
