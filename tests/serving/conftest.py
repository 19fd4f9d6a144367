"""A bench of each test's own, and the databases that a module's tests run on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .bench import Bench
from .databases import in_postgres
from .marks import POSTGRES, SQLITE


@pytest.fixture(scope="module")
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    """The kind of database that is opened; SQLite in a module that does not say."""
    kind: Any = getattr(request, "param", SQLITE)
    if kind == POSTGRES:
        with in_postgres(request.getfixturevalue("postgres").url):
            yield kind
    else:
        yield kind


@pytest.fixture
def bench(tmp_path: Path, database: str) -> Iterator[Bench]:
    made = Bench(tmp_path / "serving.db")
    yield made
    made.close()
