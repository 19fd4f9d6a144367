"""A store with watches, without Spark: what a shape's join gives is found by a plain loop."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.compile.plan import WatchPlan
from headrace.compile.watches import shape_watch, watch_plan
from headrace.core.time import SECOND
from headrace.define.definitions import WatchDefinition
from headrace.run.definition_text import parse_kind
from headrace.run.watch_constants import begin_watches
from headrace.serving import watches
from headrace.serving.alerts import Alert, AlertFilter, read_alerts
from headrace.serving.match_raiser import MatchRaiser
from headrace.serving.watches import WatchStatus
from tests.serving.bench import Bench, Click, Row, lifted
from tests.serving.rule_bench import rule_plan, rule_project

SELECT = "SELECT page, user, ms, ts FROM clicks"


def watch(name: str, above: int, end: str, notify: str = "NOTIFY FILE 'a.ndjson'") -> str:
    return f"CREATE WATCH {name} AS {SELECT} WHERE ms > {above} {end} {notify};\n"


@dataclass
class WatchBench(Bench):
    """Events arrive a second after they happen; a match below `done` ends its watch."""

    said: str = ""
    done: int = -1
    notify: dict[str, Any] = field(default_factory=dict)
    shapes: str = ""  # texts that are only deployed

    def __post_init__(self) -> None:
        self.project = rule_project(Path(), self.said, **self.notify)
        self.plan = rule_plan(self.said + self.shapes, **self.notify)
        super().__post_init__()
        said = [w for w in self.plan.watches if w.name in self.project.watches]
        with self.store.write() as db:
            watches.deploy_files(db, said, "ann", self.clock())
        self.begin()
        self.raiser = MatchRaiser(self.store.db, self.clock)

    def begin(self) -> None:
        begin_watches(self.store, self.plan, {shape.name for shape in self.plan.shapes})

    def plans(self, text: str) -> list[WatchPlan]:
        return [
            watch_plan(self.project, self.plan, shape_watch(w))
            for w in parse_kind(text, "w", WatchDefinition)
        ]

    def add(self, text: str) -> None:
        """As a running project does between two epochs."""
        with self.store.write() as db:
            for plan in self.plans(text):
                watches.add(db, plan, True, "bob", self.clock(), None)
        self.begin()

    def constants(self) -> list[dict[str, Any]]:
        boundary = self.store.stream("clicks").boundary
        with self.store.read() as db:
            return [r for s in self.plan.shapes for r in watches.constants(db, s, boundary)[0]]

    def lifted(self, view: str, clicks: Sequence[Click], first: Sequence[int]) -> list[Row]:
        if not view.startswith("_watched_"):
            return lifted(view, clicks)
        ends, found, rows = list(first), [], self.constants()
        for click in clicks:
            n, offset = click.partition, ends[click.partition]
            ends[n] += 1
            for row in rows:
                inside = row[f"_from{n}"] <= offset < row[f"_to{n}"]
                if inside and click.ms is not None and click.ms > row["_c0"]:
                    at, done = click.at_us, int(click.ms < self.done)
                    own = (click.page, click.user, click.ms, at)
                    found.append((n, offset, at, at + SECOND, row["_watch"], done, *own))
        return found

    def look(self) -> int:
        raised = sum(self.raiser.evaluate(shape) for shape in self.plan.shapes)
        self.raiser.end_expired()
        return raised

    def watch(self, name: str) -> WatchStatus:
        with self.store.read() as db:
            return watches.status(db, name)

    def matches(self, name: str) -> list[Alert]:
        """The oldest first."""
        with self.store.read() as db:
            return read_alerts(db, AlertFilter(name, limit=100_000)).alerts[::-1]

    def notices(self) -> list[tuple[Any, ...]]:
        with self.store.read() as db:
            rows = db.execute("SELECT rule, body FROM _outbox ORDER BY number").fetchall()
        said = [(rule, json.loads(body)) for rule, body in rows]
        return [(rule, body["kind"], body.get("why")) for rule, body in said]
