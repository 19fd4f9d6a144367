"""A traced project of each test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.run.offline import Offline

from .traced import Traced


@pytest.fixture
def traced(tmp_path: Path) -> Iterator[Traced]:
    made = Traced(tmp_path / "project")
    made.generation()
    yield made
    made.close()


@pytest.fixture
def offline(traced: Traced) -> Iterator[Offline]:
    service = traced.offline()
    yield service
    service.close()
