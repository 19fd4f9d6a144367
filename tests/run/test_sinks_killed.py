"""What each guarantee of a sink promises holds when its process is killed at each failpoint.

An unkilled run says which panes there are. A killed one goes on after each kill, so the epochs and
the looks are the same, and only what the sink does with its panes can differ. The target is a file
or a stream, which is drawn; in `make prove` both.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from chance import PROVE, drawn

from .sink_worker import delivered, run

pytestmark = pytest.mark.process

POINTS = [
    "sink.saving:3",
    "sink.saved:4",
    "outbox.delivered:2",
    "outbox.delivered:5",
    "sink.saved:1",
]
TARGETS = ["file", "stream"] if PROVE else [drawn("sinks").choice(["file", "stream"])]
INTO = pytest.mark.parametrize("into", TARGETS)


@pytest.fixture(scope="module")
def panes(tmp_path_factory: pytest.TempPathFactory) -> list[int]:
    """All panes of a run that nobody killed."""
    folder = tmp_path_factory.mktemp("whole")
    run(folder, "exactly_once")
    found = delivered(folder)
    assert len(found) > 20
    return found


@INTO
def test_exactly_once_loses_nothing_and_repeats_nothing(
    into: str, panes: list[int], tmp_path: Path
) -> None:
    for point in POINTS:
        run(tmp_path, "exactly_once", into, point)
    run(tmp_path, "exactly_once", into)
    assert delivered(tmp_path, into) == panes


def test_exactly_once_goes_on_after_a_torn_line(panes: list[int], tmp_path: Path) -> None:
    run(tmp_path, "exactly_once", failpoint="outbox.delivered:6")
    file = tmp_path / "out" / "panes.jsonl"
    file.write_bytes(file.read_bytes()[:-9])
    run(tmp_path, "exactly_once")
    assert delivered(tmp_path) == panes


@INTO
def test_at_least_once_loses_nothing_and_may_repeat(
    into: str, panes: list[int], tmp_path: Path
) -> None:
    for point in POINTS:
        run(tmp_path, "at_least_once", into, point)
    run(tmp_path, "at_least_once", into)
    found = delivered(tmp_path, into)
    assert sorted(set(found)) == panes
    assert len(found) > len(panes), "a pane that was delivered and not marked comes again"


@INTO
def test_at_most_once_repeats_nothing_and_may_lose(
    into: str, panes: list[int], tmp_path: Path
) -> None:
    for point in ("sink.saving:3", "outbox.marked:2", "sink.saved:4", "outbox.marked:3"):
        run(tmp_path, "at_most_once", into, point)
    run(tmp_path, "at_most_once", into)
    found = delivered(tmp_path, into)
    assert len(found) == len(set(found))
    assert set(found) < set(panes), "a pane that was marked and not delivered is lost"
