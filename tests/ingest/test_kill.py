"""A producer that sends again after a kill is counted once, wherever the kill fell."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Bench

pytestmark = pytest.mark.process

PRODUCER = """
import sys
from pathlib import Path
from headrace.core.origin import Origin
from headrace.core.schema import Schema
from headrace.define.definitions import StreamDefinition
from headrace.define.settings import DedupSettings, LogSettings, Settings
from headrace.ingest.intake import Intake
from headrace.log.embedded.writer import EmbeddedWriter

topic = EmbeddedWriter.open(Path(sys.argv[1]), 2, segment_bytes_max=1 << 20)
origin = Origin("shop.sql", 1)
definition = StreamDefinition("clicks", Schema(()), origin, key="user", id="event_id")
log, dedup = LogSettings(free_bytes_min=0), DedupSettings(ids_max=10)
intake = Intake(definition, topic, settings=Settings("shop", log=log, dedup=dedup))
for group in range(5):
    numbers = range(group * 20, group * 20 + 20)
    intake.accept([b'{"event_id":%d,"user":"user-%d"}' % (n, n) for n in numbers])
    print(group, flush=True)
topic.close()
intake.close()
"""

SENT = [b'{"event_id":%d,"user":"user-%d"}' % (n, n) for n in range(100)]


def produce(folder: Path, failpoint: str) -> tuple[int, list[str]]:
    """Send all events; the exit code, and the groups that were acknowledged."""
    done = subprocess.run(
        [sys.executable, "-c", PRODUCER, str(folder)],
        env={**os.environ, "HEADRACE_FAILPOINT": failpoint},
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    return done.returncode, [line for line in done.stdout.splitlines() if line.isdigit()]


# The index is saved a first time when it is made, before anything is sent.
@pytest.mark.parametrize(
    "point", ["log.written:6", "log.synced:6", "log.marked:6", "ids.written:1", "ids.saved:2"]
)
def test_events_sent_again_after_a_kill_are_counted_once(bench: Bench, point: str) -> None:
    topic = bench.folder / "topic"
    code, acknowledged = produce(topic, point)
    assert code == -signal.SIGKILL
    assert point.startswith("ids.") or 0 < len(acknowledged) < 5
    assert set(SENT[: 20 * len(acknowledged)]) <= set(bench.records())
    assert produce(topic, "") == (0, list("01234"))
    events = [record for _, record, status in bench.logged() if status == 0]
    assert sorted(events) == sorted(SENT)
