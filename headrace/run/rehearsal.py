"""A rehearsal of decision rules: a dry run over past events, compared with the deployed version.

The rules are those of the project's files, and the events all accepted events of the master and the
log; nothing is deployed or changed. The deployed version is computed over the same events and with
the current tables, and compared event by event.
tests/run/test_rehearsal.py rehearses a changed set of rules.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec
from sqlglot import exp

from headrace.compile.plan import DerivedPlan, Plan
from headrace.core.errors import Unsupported
from headrace.core.event import ARRIVED_AT, OFFSET, PARTITION
from headrace.core.flow import stream_names
from headrace.core.origin import Origin
from headrace.core.time import iso
from headrace.define.dialect import parse_select, sql_of
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.define.rules import DecisionRules
from headrace.run.compiling import compile_with, deployed_plan, functions_of, session
from headrace.run.history import stream_relations, table_relation

_EVENT_ID = f"{PARTITION}, {OFFSET}"
_NOW, _BEFORE = "_rules_now", "_rules_before"


class Comparison(msgspec.Struct, frozen=True):
    """The number of events whose results differ from those of the deployed version."""

    differ: int  # events with a field that differs
    fields: dict[str, int]
    new_fields: list[str]
    gone_fields: list[str]
    only_now: int  # events without a result of the deployed version
    only_deployed: int


class Rehearsal(msgspec.Struct, frozen=True):
    """What the rules decide for past events."""

    rules: str
    stream: str
    since: str | None
    events: int
    results: int  # more than events if an event joins several rows of a table
    decided: dict[str, int]  # by rule, in the order of the rules
    undecided: int
    deployed: Comparison | None
    samples: list[dict[str, Any]]


def rehearse(project: Project, name: str, since_us: int | None, limit: int) -> Rehearsal:
    """Rehearse rules in a Spark session of its own."""
    with session(project, "rules") as spark:
        return rehearse_in(spark, project, name, since_us, limit)


def rehearse_in(
    spark: Any, project: Project, name: str, since_us: int | None, limit: int
) -> Rehearsal:
    """Rehearse rules in a running session."""
    plan, before = compile_with(spark, project), deployed_plan(project)
    rules = project.queries[name].rules
    assert rules is not None
    with tempfile.TemporaryDirectory() as folder:
        trial = _Trial(spark.newSession(), project, plan, before, Path(folder))
        return trial.run(_derived(plan, name), rules, since_us, limit)


class _Trial:
    """One set of rules over one history."""

    def __init__(
        self, spark: Any, project: Project, plan: Plan, before: Plan | None, folder: Path
    ) -> None:
        from headrace.spark.functions import register_functions

        self.spark, self.project, self.folder = spark, project, folder
        self.plan, self.before = plan, before
        register_functions(spark, functions_of(project))

    def run(
        self, derived: DerivedPlan, rules: DecisionRules, since_us: int | None, limit: int
    ) -> Rehearsal:
        source = stream_names(derived.stream)[0]
        self._register(source, since_us)
        self.spark.sql(_with_offsets(derived.sql)).createOrReplaceTempView(_NOW)
        decided, undecided = self._decided(rules)
        (total,) = self._rows(
            f"SELECT count(DISTINCT {_EVENT_ID}) AS events, count(*) AS results FROM {_NOW}"
        )
        return Rehearsal(
            derived.name,
            derived.stream,
            None if since_us is None else iso(since_us),
            total["events"],
            total["results"],
            decided,
            undecided,
            self._compared(derived.name),
            self._samples(rules, limit),
        )

    def _register(self, source: str, since_us: int | None) -> None:
        """Register the streams and tables of both plans."""
        from headrace.spark.query_worker import relation_frame

        layout = Layout.of(self.project)
        plans = [self.plan, *([self.before] if self.before else [])]
        streams = {s.name: s for plan in reversed(plans) for s in plan.streams}
        tables = {t.name: t for plan in reversed(plans) for t in plan.tables}
        raw = {s.name for plan in plans for s in plan.streams if s.raw}
        relations = [table_relation(table, self.project.folder) for table in tables.values()]
        for stream in streams.values():
            time = stream.watermark[0] if stream.watermark else ARRIVED_AT
            limited = since_us is not None and stream.name == source
            since = f"`{time}` >= timestamp_micros({since_us})" if limited else None
            named = stream.name in raw
            relations += stream_relations(layout, stream, self.folder, since, raw=named)[0]
        for relation in relations:
            frame = relation_frame(self.spark, relation)
            frame.createOrReplaceTempView(f"`{relation.name}`")

    def _decided(self, rules: DecisionRules) -> tuple[dict[str, int], int]:
        column = f"`{rules.column}`"
        one = f"explode_outer({column})" if rules.all_matches else column
        rows = self._rows(
            f"SELECT name, count(*) AS n FROM (SELECT {one} AS name FROM {_NOW}) GROUP BY name"
        )
        found = {row["name"]: row["n"] for row in rows}
        return {name: found.get(name, 0) for name in rules.names}, found.get(None, 0)

    def _compared(self, name: str) -> Comparison | None:
        deployed = next((d for d in self.before.derived if d.name == name), None) if (
            self.before
        ) else None  # fmt: skip
        if deployed is None or deployed.carry:
            return None
        self.spark.sql(_with_offsets(deployed.sql)).createOrReplaceTempView(_BEFORE)
        now, before = self._columns(_NOW), self._columns(_BEFORE)
        both = [column for column in now if column in before]
        # An event with several results is compared by all of them, whatever their order.
        texts = ", ".join(map(_as_text, both))
        sides = [
            f"(SELECT {_EVENT_ID}, {texts} FROM {view} GROUP BY {_EVENT_ID})"
            for view in (_NOW, _BEFORE)
        ]
        met = f"n.{OFFSET} IS NOT NULL AND b.{OFFSET} IS NOT NULL"
        differs = [f"({met} AND n.`{column}` <> b.`{column}`)" for column in both]
        counts = [f"count_if({test}) AS `f{number}`" for number, test in enumerate(differs)]
        (row,) = self._rows(
            f"SELECT count_if({' OR '.join(differs)}) AS differ, "
            f"count_if(b.{OFFSET} IS NULL) AS only_now, "
            f"count_if(n.{OFFSET} IS NULL) AS only_deployed, {', '.join(counts)} "
            f"FROM {sides[0]} n FULL JOIN {sides[1]} b "
            f"ON n.{PARTITION} = b.{PARTITION} AND n.{OFFSET} = b.{OFFSET}"
        )
        fields = {column: row[f"f{number}"] for number, column in enumerate(both)}
        return Comparison(
            row["differ"],
            {column: many for column, many in fields.items() if many},
            [column for column in now if column not in before],
            [column for column in before if column not in now],
            row["only_now"],
            row["only_deployed"],
        )

    def _samples(self, rules: DecisionRules, limit: int) -> list[dict[str, Any]]:
        """The newest events of each decision in turn, so that rare decisions are included."""
        column = f"to_json(struct(`{rules.column}`))"
        turn = f"row_number() OVER (PARTITION BY {column} ORDER BY {OFFSET} DESC, {PARTITION})"
        first = [rules.column, *rules.fields]
        others = [name for name in self._columns(_NOW) if name.lower() not in _lower(first)]
        shown = ", ".join(f"`{name}`" for name in (*first, *others))
        return self._rows(
            f"SELECT {shown} FROM (SELECT *, {turn} AS _turn FROM {_NOW}) "
            f"ORDER BY _turn, {column}, {OFFSET} DESC LIMIT {limit}"
        )

    def _columns(self, view: str) -> list[str]:
        return [name for name in self.spark.table(view).columns if not name.startswith("_")]

    def _rows(self, sql: str) -> list[dict[str, Any]]:
        from headrace.spark.query_values import as_text_columns, json_rows

        frame = self.spark.sql(sql)
        rows = json_rows(as_text_columns(frame).toArrow(), frame.schema)
        return [dict(zip(frame.columns, row, strict=True)) for row in rows]


def _derived(plan: Plan, name: str) -> DerivedPlan:
    found = next(derived for derived in plan.derived if derived.name == name)
    if found.carry:
        raise Unsupported(
            f"rules '{name}' cannot be tested: they read a stateful stream",
            hint="only views can read such a stream; apply the rules before the stateful step.",
        )
    return found


def _with_offsets(sql: str) -> str:
    """The SELECT of a derived stream with the partition and offset of each event."""
    select = parse_select(sql, Origin("plan", 1))
    if not any(item.is_star for item in select.expressions):
        alias = select.args["from_"].this.alias_or_name
        for name in (PARTITION, OFFSET):
            select.select(exp.column(name, table=alias), copy=False)
    return sql_of(select)


def _as_text(column: str) -> str:
    """All values of a column as one text."""
    values = f"collect_list(to_json(struct(`{column}` AS v)))"
    return f"to_json(sort_array({values})) AS `{column}`"


def _lower(names: list[str]) -> set[str]:
    return {name.lower() for name in names}
