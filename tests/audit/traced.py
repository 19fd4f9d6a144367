"""A stopped project whose rows can be traced, made without Spark: a log, a master, a store.

Rows are lifted by hand from the records in the log, so nothing here shares code with the second
engine. A clock goes on by a second at each step, because a replay is told in the order of time.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from master.bench import InProcess
from serving.bench import HeldAnalyser
from sqlglot import exp

from headrace.compile.passes import compile_project
from headrace.core.event import EventStatus
from headrace.core.position import Position, PositionRange
from headrace.core.shedding import Shedding
from headrace.core.time import MINUTE, SECOND, from_iso, iso
from headrace.define.layout import Layout
from headrace.define.project import Project, load_project
from headrace.log.embedded.reader import EmbeddedReader
from headrace.log.embedded.writer import EmbeddedWriter
from headrace.master.archive import Archive
from headrace.run.offline import Offline
from headrace.serving.opening import open_store
from headrace.serving.store import Epoch
from tests.serving.bench import Row, as_lifted

SETTINGS = 'name = "traced"\n[log]\nfree_bytes_min = 0\n'
DEFINITIONS = """
CREATE STREAM clicks (page STRING, user STRING, ms BIGINT, ts TIMESTAMP, n BIGINT, passed BIGINT,
  lower STRING, upper STRING, p STRING, here BIGINT, ever_passed BIGINT, reason STRING,
  twice BIGINT GENERATED ALWAYS AS (2 * ms), sound STRING GENERATED ALWAYS AS (soundex(page)),
  tool STRING GENERATED ALWAYS AS (_raw:agent::string),
  WATERMARK ts DELAY OF INTERVAL 10 SECONDS) WITH (partitions = '2', id = 'event_id');
CREATE TABLE sections (page STRING, section STRING) USING csv LOCATION 'sections.csv';
CREATE STREAM quick AS SELECT page AS p, ms, ts FROM clicks WHERE ms < 50;

CREATE VIEW slow AS SELECT page, window(ts, '1 minute') AS minute, count(*) AS n, max(ms) AS slowest
  FROM clicks WHERE ms > 5 GROUP BY 1, 2;
CREATE VIEW known AS SELECT c.page, count(*) AS n FROM clicks c JOIN sections s ON c.page = s.page
  WHERE c.ms > 0 GROUP BY c.page;
CREATE VIEW quick_pages AS SELECT p AS page, count(*) AS n FROM quick GROUP BY p;
CREATE VIEW total AS SELECT count(*) AS n FROM clicks;
CREATE VIEW often AS SELECT page, count(*) AS n FROM clicks GROUP BY page HAVING count(*) > 1;
CREATE VIEW unnamed AS SELECT count(*) AS n FROM clicks GROUP BY page;
CREATE VIEW reread AS SELECT page, sum(n) AS n FROM slow GROUP BY page;
"""
BEGIN_US = from_iso("2026-01-01T00:00:00Z")
Event = dict[str, Any]


class Analyser(HeldAnalyser):
    _BY_NAME = HeldAnalyser._BY_NAME | {"section": "string", "p": "string"}

    def _type(self, item: Any) -> str:
        return "double" if isinstance(item, exp.Div) else super()._type(item)


def event(page: str, second: int, ms: int | None = 10, **more: Any) -> bytes:
    said = {"page": page, "ms": ms, "ts": iso(BEGIN_US + second * SECOND)}
    return json.dumps(said | more).encode()


def _page(found: Event) -> Row:
    return (found["page"],)


def _minute(found: Event) -> Row:
    at = from_iso(found["ts"])
    return found["page"], at - at % MINUTE


# For each view: the key of an event, and whether it counts.
LIFTS: dict[str, tuple[Callable[[Event], Row], Callable[[Event], bool]]] = {
    "slow": (_minute, lambda e: (e["ms"] or 0) > 5),
    "known": (_page, lambda e: e["page"] in {"/a", "/b"} and (e["ms"] or 0) > 0),
    "quick_pages": (_page, lambda e: e["ms"] is not None and e["ms"] < 50),
    "total": (lambda e: (), lambda e: True),
    "often": (_page, lambda e: True),
    "unnamed": (_page, lambda e: True),
}


def lifted(view: str, events: list[Event]) -> list[Row]:
    key, counts = LIFTS[view]
    groups: defaultdict[Row, list[Event]] = defaultdict(list)
    for found in filter(counts, events):
        groups[key(found)].append(found)
    if view == "total":
        groups[()] += []
    return [(*k, len(group), *_windowed(view, group)) for k, group in groups.items()]


def _windowed(view: str, group: list[Event]) -> Row:
    """What only the view with a window has: the slowest, and the lateness of its events."""
    if view != "slow":
        return ()
    return max(e["ms"] for e in group), len(group), 0, None, None, None, None


@dataclass
class Clock:
    now_us: int = BEGIN_US + 600 * SECOND

    def __call__(self) -> int:
        self.now_us += SECOND
        return self.now_us


@dataclass
class Traced:
    """The project, and the hand that works it."""

    folder: Path
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        (self.folder / "headrace.toml").write_text(SETTINGS)
        (self.folder / "traced.sql").write_text(DEFINITIONS)
        (self.folder / "sections.csv").write_text("page,section\n/a,one\n/b,two\n")
        self.project: Project = load_project(self.folder)
        self.plan = compile_project(self.project, Analyser())
        self.layout = Layout.of(self.project)
        self.store = open_store(self.layout.store, group_us=1, clock=self.clock)
        self.store.take_over()
        self.store.deploy(self.plan)
        address = self.layout.log("clicks")
        self.topic = EmbeddedWriter.open(
            address.folder, 2, segment_bytes_max=1 << 20, clock=self.clock
        )
        stream = self.plan.stream("clicks")
        self.archive = Archive(InProcess(), stream, address, self.layout.master("clicks"))

    def send(self, *records: bytes, partition: int = 0, status: int = EventStatus.EVENT) -> None:
        self.topic.append(partition, records, bytes([status] * len(records))).result(20)

    def events(self, range: PositionRange, shedding: Shedding | None = None) -> list[Event]:
        """The events of a range as they were sent."""
        reader, found = EmbeddedReader(self.topic.path), []
        for partition, interval in range.intervals():
            gone = dict(shedding.passed_over(range))[partition].tolist() if shedding else []
            for block in reader.blocks(partition, interval):
                rows = zip(block.records(), block.statuses, strict=True)
                for offset, (record, status) in enumerate(rows, block.first_offset):
                    if status == EventStatus.EVENT and offset not in gone and record[:1] == b"{":
                        found.append(json.loads(record))
        return found

    def epoch(self, shedding: Shedding | None = None) -> None:
        """Speed takes all that waits."""
        state, end = self.store.stream("clicks"), self.topic.end()
        range = PositionRange(state.position, end)
        taken, whole = self.events(range, shedding), self.events(range)
        counts = {"events": len(taken), "late": 0, "duplicates": 0, "dead_letters": 0}
        counts["dead_letters"] = len(range) - len(whole)
        rows = {
            v.id: as_lifted(v.plan, lifted(v.name, taken)) for v in self.store.versions("clicks")
        }
        at = self.clock()
        reached = state.after(end, state.reached.highs, at)
        base = (state.generation, range.lower, reached)
        self.store.commit_epoch(Epoch("clicks", *base, counts, rows, at, shedding=shedding))

    def generation(self) -> None:
        """Batch takes over all that speed has, or all of the log where that is more."""
        self.archive.step(1_000)
        self.store.close_group("clicks")
        start, end = Position.start(2), self.archive.table.newest().position
        events = self.events(PositionRange(start, end))
        group = max((group.number for group in self.store.closed_groups("clicks")), default=0)
        staged = [
            self.store.stage(v, True, as_lifted(v.plan, lifted(v.name, events)), {})
            for v in self.store.versions("clicks")
        ]
        state = self.store.stream("clicks")
        reached = state.after(end, (None, None), self.clock())
        self.store.promote("clicks", state.generation, reached, group, staged, [])

    def offline(self) -> Offline:
        return Offline(self.project)

    def close(self) -> None:
        self.topic.close()
        self.store.close()
