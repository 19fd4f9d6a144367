"""Every transcript comes true on every engine.

An engine is a name in `ENGINES` and a function that makes it; to add one, add a line (and, if it is
slow to start, keep what it shares in a session fixture and let the function reach for it).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.testing import Engine, ReferenceEngine, Transcript, load, play
from headrace.testing.transcript import Counts, Expect

PATHS = sorted(Path(__file__).parent.glob("*.yaml"))
ENGINES: dict[str, Callable[[pytest.FixtureRequest], Engine]] = {
    "reference": lambda _request: ReferenceEngine(),
}


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    return ENGINES[request.param](request)


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def transcript(request: pytest.FixtureRequest) -> Transcript:
    return load(request.param)


def test_the_story_comes_true(transcript: Transcript, engine: Engine) -> None:
    play(transcript, engine)


def test_there_are_many_stories_each_with_its_own_name_and_an_expectation() -> None:
    stories = [load(path) for path in PATHS]
    assert len(stories) >= 40
    assert len({story.name for story in stories}) == len(stories)
    checks = [any(isinstance(step, Expect | Counts) for step in s.steps) for s in stories]
    assert all(checks)
