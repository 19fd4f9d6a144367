"""Compiles rules to streams and views that batch and speed maintain, and to a plan of their alerts.

Over a stream, the rule's SELECT is a derived stream, and a hidden view groups its rows by position
and all values: one row is one alert, the same in both layers. Over views, the SELECT is a hidden
view over views, and a row is identified by its keys.
tests/compile/test_rules.py checks the plans and reads each error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot import exp

from headrace.compile.calls import has_aggregate
from headrace.compile.destinations import destinations_of
from headrace.compile.plan import OutputPlan, Plan, RulePlan, ViewKind, ViewPlan
from headrace.compile.view_subscription import keys_of, streams_of
from headrace.core.errors import BadDefinition, HeadraceError, UnknownColumn
from headrace.core.flow import stream_names
from headrace.core.rule import ALERTS, hidden, stream_of, view_of
from headrace.define.definitions import QueryDefinition, RuleDefinition
from headrace.define.dialect import parse_query, sql_of
from headrace.define.project import Project
from headrace.define.queries import query_of

_HIDDEN_NAME = re.compile(r"(?:stream |view )?'_(?:rule|alerts)_(\w+)'")
_LEDGER = (
    ("id", "STRING"), ("rule", "STRING"), ("version", "BIGINT"), ("severity", "STRING"),
    ("state", "STRING"), ("body", "STRING"), ("event_time", "TIMESTAMP"),
    ("raised_at", "TIMESTAMP"), ("raised_by", "STRING"), ("suppressed_by", "STRING"),
    ("missed", "BOOLEAN"), ("withdrawn_at", "TIMESTAMP"), ("acknowledged_by", "STRING"),
    ("acknowledged_at", "TIMESTAMP"), ("note", "STRING"),
)  # fmt: skip


def rule_queries(project: Project) -> dict[str, QueryDefinition]:
    """The SELECT of each rule as a definition: a view if it reads views, else a stream."""
    found = [_query(project, rule) for rule in project.rules.values()]
    return {query.name: query for query in found}


def _query(project: Project, rule: RuleDefinition) -> QueryDefinition:
    said = rule.origin, rule.query_origin
    stream = query_of("stream", stream_of(rule.name), rule.query, *said)
    tree = parse_query(stream.query, rule.query_origin)
    read = {table.name.lower() for table in tree.find_all(exp.Table)}
    views = {query.name.lower() for query in project.queries.values() if query.kind == "view"}
    if not read & views:
        return stream
    return query_of("view", view_of(rule.name), rule.query, *said)


@contextmanager
def errors_name_rules() -> Iterator[None]:
    """In errors, replace the names of a rule's hidden definitions by that of the rule."""
    try:
        yield
    except HeadraceError as error:
        said = [_HIDDEN_NAME.sub(r"rule '\1'", text or "") for text in (error.message, error.hint)]
        error.message, error.hint, error.args = said[0], said[1] or None, (said[0],)
        raise


def ledger_view() -> ViewPlan:
    """`alerts`: all alerts as a view, for queries and subscriptions."""
    outputs = tuple(OutputPlan(name, type, "") for name, type in _LEDGER)
    columns = ", ".join(name for name, _ in _LEDGER)
    return ViewPlan(ALERTS, ViewKind.READ, "", outputs, read_sql=f"SELECT {columns} FROM _ledger")


def check_names(project: Project) -> None:
    """The name `alerts` is reserved in projects with rules or watches."""
    for definition in project.definitions if project.rules or project.watches else ():
        if definition.name.lower() == ALERTS:
            raise BadDefinition(
                f"'{definition.name}' is reserved for the view of all alerts",
                hint="in a project with rules or watches, give the definition another name.",
                origin=definition.origin,
            )


def rule_plans(project: Project, plan: Plan) -> list[RulePlan]:
    """The plan of each rule."""
    return [_rule_plan(project, plan, rule) for rule in project.rules.values()]


def _rule_plan(project: Project, plan: Plan, rule: RuleDefinition) -> RulePlan:
    view = plan.view(view_of(rule.name))
    assert view is not None
    columns = tuple(output.name for output in view.outputs if not hidden(output.name))
    keys = session = None
    if not view.kept:
        select = parse_query(rule.query, rule.query_origin)
        keys = _keys(select, view, plan)
        session = _session(select, keys, view, plan)
    return RulePlan(
        rule.name,
        rule.text,
        columns,
        rule.severity.value,
        destinations_of(project, plan, rule),
        rule.suppress_us,
        _per(rule, columns),
        rule.coupling.value,
        rule.corrections,
        keys,
        tuple(name for flow in streams_of(plan, view) for name in stream_names(flow)),
        str(rule.origin),
        session,
    )


def _per(rule: RuleDefinition, columns: tuple[str, ...]) -> tuple[str, ...]:
    known = {name.lower(): name for name in columns}
    for name in rule.per:
        if name.lower() not in known:
            raise UnknownColumn(
                f"rule '{rule.name}' suppresses PER '{name}', but its SELECT has no such column",
                detail=f"its columns are: {', '.join(columns)}.",
                origin=rule.origin,
            )
    return tuple(known[name.lower()] for name in rule.per)


def _keys(select: exp.Query, view: ViewPlan, plan: Plan) -> tuple[str, ...]:
    """The columns that identify a row of the rule's answer."""
    names = tuple(output.name for output in view.outputs)
    if group := select.args.get("group"):
        grouped = {sql_of(item).lower() for item in group.expressions}
        items = [(i.alias_or_name, sql_of(i.unalias()).lower()) for i in select.expressions]
        return tuple(n for n, sql in items if sql in grouped or n.lower() in grouped) or names
    if any(has_aggregate(item) for item in select.expressions):
        return ()
    source = plan.view(view.reads[0]) if len(view.reads) == 1 else None
    keys = keys_of(source) if source else None
    shown = _shown(select, names)
    known = keys is not None and all(key.lower() in shown for key in keys)
    return tuple(shown[key.lower()] for key in keys or ()) if known else names


def _session(select: exp.Query, keys: tuple[str, ...], view: ViewPlan, plan: Plan) -> str | None:
    """The key of the rule's answer that is a session of the one view it reads."""
    source = plan.view(view.reads[0]) if len(view.reads) == 1 else None
    if source is None or source.joins is None:
        return None
    names = tuple(output.name for output in view.outputs)
    shown, known = _shown(select, names), keys_of(source)
    if known is None or not all(shown.get(key.lower()) in keys for key in known):
        return None
    window = next(output.name for output in source.outputs if output.key == source.joins)
    return shown[window.lower()]


def _shown(select: exp.Query, names: tuple[str, ...]) -> dict[str, str]:
    """The names in the answer of the columns that are selected unchanged."""
    if any(item.is_star for item in select.expressions):
        return {name.lower(): name for name in names}
    plain = [i for i in select.expressions if isinstance(i.unalias(), exp.Column)]
    return {item.unalias().name.lower(): item.alias_or_name for item in plain}
