"""A project that does not run, with something in every place: a generation, speed's rows, a master
and a log that is longer than both. Made without Spark, of the parts that do not need it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from master.bench import InProcess
from serving.bench import CLICKS, DEFINITIONS, Bench, plan_of

from headrace.core.event import EventStatus
from headrace.define.layout import Layout
from headrace.define.project import Project, load_project
from headrace.log.embedded.mark import DurableMark
from headrace.log.embedded.writer import EmbeddedWriter
from headrace.master.archive import Archive

SETTINGS = """
name = "stopped"
[log]
free_bytes_min = 0
[spark]
master = "local[1]"
[query]
seconds_max = 60.0
memory = "512m"
"""


def make_stopped(folder: Path) -> Project:
    """Of eight events four are in the generation, six in the store and the master, and all, with a
    dead letter and a duplicate after them, in the log.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "headrace.toml").write_text(SETTINGS)
    (folder / "bench.sql").write_text(DEFINITIONS)
    project = load_project(folder)
    _fill_store(Layout.of(project).store.path)
    _fill_log(project)
    return project


def _fill_store(path: Path) -> None:
    bench = Bench(path)
    bench.send(*CLICKS[:4])
    bench.build()
    bench.send(*CLICKS[4:6])
    bench.close()


def _fill_log(project: Project) -> None:
    layout, stream = Layout.of(project), plan_of().stream("clicks")
    topic = EmbeddedWriter.open(
        layout.log("clicks").folder, 2, segment_bytes_max=1 << 20, clock=lambda: ARRIVED_US
    )
    for number, click in enumerate(CLICKS):
        if number == 6:
            archive = Archive(InProcess(), stream, layout.log("clicks"), layout.master("clicks"))
            archive.step(100)
        topic.append(click.partition, [click.record], bytes(1)).result()
    topic.append(1, [b"not \xff json"], bytes(1)).result()
    topic.append(1, [CLICKS[0].record], bytes([EventStatus.DUPLICATE])).result()
    topic.close()


def cut_power(project: Project, mark: bytes) -> None:
    """Leave the marks of the log as a power cut may: older than the synced blocks, or torn."""
    for path in Layout.of(project).log("clicks").folder.glob("*/durable"):
        path.write_bytes(mark)


OLD_MARKS = [
    pytest.param(DurableMark(0, 0, 0).encoded(), id="old"),
    pytest.param(b"", id="empty"),
    pytest.param(b"torn", id="torn"),
]
# The arrival of every event above.
ARRIVED_US = CLICKS[0].at_us + 600_000_000
