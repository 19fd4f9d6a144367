"""F2: kill -9 at each step of a commit; what was acknowledged survives, and is there once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.log.embedded.writer import EmbeddedWriter

from .conftest import put, read_all

pytestmark = pytest.mark.process

WRITER = """
import sys
from pathlib import Path
from headrace.log.embedded.writer import EmbeddedWriter
topic = EmbeddedWriter.open(Path(sys.argv[1]), 1, segment_bytes_max=4096)
for i in range(topic.end().offsets[0], 1000):
    topic.append(0, [b"%03d" % i + bytes(700)], bytes(1)).result()
    print(i, flush=True)  # the producer's own journal of acknowledged events
"""


def run_until_killed(path: Path, failpoint: str) -> list[int]:
    """Run the writer until its failpoint; returns what it was acknowledged."""
    root = str(Path(__file__).parents[2])
    env = {**os.environ, "HEADRACE_FAILPOINT": failpoint, "PYTHONPATH": root}
    done = subprocess.run(
        [sys.executable, "-c", WRITER, str(path)], env=env, capture_output=True, timeout=60
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    return [int(line) for line in done.stdout.split()]


@pytest.mark.parametrize("name", ["log.written", "log.synced", "log.marked"])
def test_acknowledged_events_survive_kill_9(tmp_path: Path, name: str) -> None:
    path = tmp_path / "clicks"
    acknowledged: list[int] = []
    for count in (1, 7, 12):  # the last ones come after a seal; each run recovers the one before
        acknowledged += run_until_killed(path, f"{name}:{count}")
    topic = EmbeddedWriter.open(path, 1, segment_bytes_max=4096)
    numbers = [int(record[:3]) for record in read_all(path)]
    assert numbers == list(range(len(numbers)))
    assert set(acknowledged) <= set(numbers)
    assert len(numbers) == 20  # the block in hand was whole each time, so it was kept
    assert put(topic, b"next").lower == 20
    topic.close()
