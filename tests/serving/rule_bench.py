"""A store with rules, without Spark: the rows of a rule's hidden view are lifted by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.compile.passes import compile_project
from headrace.compile.plan import Plan
from headrace.core.origin import Origin
from headrace.core.rule import hidden
from headrace.define.dialect import parse_query
from headrace.define.project import Project
from headrace.define.settings import NotifySettings, Settings
from headrace.define.statements import read_statements
from headrace.serving.alert_raiser import AlertRaiser
from headrace.serving.alerts import Alert, AlertFilter, read_alerts
from tests.serving.bench import (
    STREAM,
    VIEWS,
    WINDOWED,
    Bench,
    Click,
    HeldAnalyser,
    Row,
    lifted,
)

HITS = f"CREATE VIEW hits AS {VIEWS['hits']};\n"
VISITS = f"CREATE VIEW visits AS {WINDOWED['visits']};\n"
SELECT = "SELECT page, user, ms, ts FROM clicks WHERE ms > 50"
SLOW = f"CREATE RULE slow AS {SELECT}"
BUSY = "CREATE RULE busy AS SELECT * FROM hits WHERE n > 1"
TOLD = "CREATE STREAM told (page STRING, alert_id STRING) WITH (id = 'event_id');\n"


class RuleAnalyser(HeldAnalyser):
    """Knows also the columns of what it was told the name of."""

    def __init__(self) -> None:
        self.known: dict[str, list[tuple[str, str]]] = {}

    def analyse(self, sql: str, origin: Origin, name: str | None = None) -> list[tuple[str, str]]:
        query = parse_query(sql, origin)
        if query.expressions[0].is_star:
            found = self.known[query.args["from_"].this.name]
        else:
            found = super().analyse(sql, origin, name)
        if name:
            self.known[name] = found
        return found


def rule_project(folder: Path, sql: str, **notify: Any) -> Project:
    settings = Settings("bench", notify=NotifySettings(**notify))
    return Project(folder, settings, tuple(read_statements(STREAM + HITS + sql, "bench.sql")))


def rule_plan(sql: str, folder: Path = Path(), **notify: Any) -> Plan:
    return compile_project(rule_project(folder, sql, **notify), RuleAnalyser())


@dataclass
class RuleBench(Bench):
    """`lost` are users whose clicks speed does not see, `wrong` those that only speed sees."""

    rules: str = SLOW
    lost: set[str] = field(default_factory=set)
    wrong: set[str] = field(default_factory=set)
    batch: bool = False
    notify: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.plan = rule_plan(self.rules, **self.notify)
        super().__post_init__()
        self.store.deploy_rules(self.plan, (), "ann")
        self.raiser = AlertRaiser(self.store.db, self.clock)

    def redeploy(self, sql: str, **notify: Any) -> None:
        """Another text of the rules, on top of what is there."""
        self.plan = rule_plan(sql, **notify)
        self.store.deploy(self.plan)
        self.store.deploy_rules(self.plan, (), "bob")

    def lifted(self, view: str, clicks: Sequence[Click], first: Sequence[int]) -> list[Row]:
        if not hidden(view):
            return lifted(view, clicks)
        ends, found = list(first), []
        unseen = self.wrong if self.batch else self.lost
        for click in clicks:
            place = (click.partition, ends[click.partition])
            ends[click.partition] += 1
            if (click.ms or 0) > 50 and click.user not in unseen:
                at = click.at_us
                found.append((*place, at, at, click.page, click.user, click.ms, at))
        return found

    def build(self, **said: Any) -> Any:
        self.batch = True
        try:
            return super().build(**said)
        finally:
            self.batch = False

    def look(self) -> int:
        return sum(self.raiser.evaluate(rule) for rule in self.plan.rules)

    def alerts(self, **wanted: Any) -> list[Alert]:
        """The oldest first."""
        with self.store.read() as db:
            return read_alerts(db, AlertFilter(**wanted)).alerts[::-1]

    def said(self, *columns: str) -> list[Any]:
        return [tuple(getattr(a, c, a.body.get(c)) for c in columns) for a in self.alerts()]

    def notices(self) -> list[tuple[Any, ...]]:
        with self.store.read() as db:
            rows = db.execute("SELECT queue, key, body, state FROM _outbox ORDER BY number")
            return [
                (queue, key, b and json.loads(b)["kind"], state) for queue, key, b, state in rows
            ]
