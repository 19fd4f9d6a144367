"""Rules become definitions that batch and speed keep already, and a plan of what to do with them.

Over a stream, the rule's SELECT is a derived stream, and a hidden view groups its rows by all that
they say, their place in the log first: one kept row is one alert, the same in both layers. Over
views, the SELECT is a hidden view over views, and a row is known by the keys that it has.
tests/compile/test_rules.py checks the plans and reads each refusal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from sqlglot import exp

from headrace.compile.calls import aggregates_in
from headrace.compile.plan import ActionPlan, OutputPlan, Plan, RulePlan, ViewPlan
from headrace.compile.subscribe import keys_of, streams_of
from headrace.core.errors import (
    BadDefinition,
    HeadraceError,
    UnknownColumn,
    UnknownName,
    Unsupported,
)
from headrace.core.rule import ALERTS, Kind, hidden, stream_of, view_of
from headrace.define.definitions import (
    ActionDefinition,
    QueryDefinition,
    RuleDefinition,
    WatchDefinition,
)
from headrace.define.dialect import parse_query, sql_of
from headrace.define.paths import output_file
from headrace.define.project import Project
from headrace.define.queries import query_of

Notifier = RuleDefinition | WatchDefinition
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
def in_words_of_rules() -> Iterator[None]:
    """What is said of a rule's hidden definitions is said of the rule."""
    try:
        yield
    except HeadraceError as error:
        said = [_HIDDEN_NAME.sub(r"rule '\1'", text or "") for text in (error.message, error.hint)]
        error.message, error.hint, error.args = said[0], said[1] or None, (said[0],)
        raise


def ledger_view() -> ViewPlan:
    """`alerts`: the ledger as a view that can be asked and subscribed to."""
    outputs = tuple(OutputPlan(name, type, "") for name, type in _LEDGER)
    columns = ", ".join(name for name, _ in _LEDGER)
    return ViewPlan(ALERTS, "read", "", outputs, read_sql=f"SELECT {columns} FROM _ledger")


def check_names(project: Project) -> None:
    """The ledger's name is not free where there are rules or watches."""
    for definition in project.definitions if project.rules or project.watches else ():
        if definition.name.lower() == ALERTS:
            raise BadDefinition(
                f"'{definition.name}' is the name of the view of all alerts",
                hint="in a project with rules or watches, give the definition another name.",
                origin=definition.origin,
            )


def rule_plans(project: Project, plan: Plan) -> list[RulePlan]:
    """What is done with the alerts of each rule."""
    return [_rule_plan(project, plan, rule) for rule in project.rules.values()]


def _rule_plan(project: Project, plan: Plan, rule: RuleDefinition) -> RulePlan:
    view = plan.view(view_of(rule.name))
    assert view is not None
    columns = tuple(output.name for output in view.outputs if not hidden(output.name))
    actions = tuple(action_plan(project, plan, rule, action) for action in rule.actions)
    return RulePlan(
        rule.name,
        rule.text,
        columns,
        rule.severity.value,
        actions,
        rule.suppress_us,
        _per(rule, columns),
        rule.coupling.value,
        rule.corrections,
        None if view.kept else _keys(rule, view, plan),
        tuple(name for flow in streams_of(plan, view) for name in flow.split("+")),
        str(rule.origin),
        None if view.kept else _session(rule, view, plan),
    )


def _per(rule: RuleDefinition, columns: tuple[str, ...]) -> tuple[str, ...]:
    known = {name.lower(): name for name in columns}
    for name in rule.per:
        if name.lower() not in known:
            raise UnknownColumn(
                f"rule '{rule.name}' suppresses PER '{name}', which its SELECT does not have",
                detail=f"it has: {', '.join(columns)}.",
                origin=rule.origin,
            )
    return tuple(known[name.lower()] for name in rule.per)


def _keys(rule: RuleDefinition, view: ViewPlan, plan: Plan) -> tuple[str, ...]:
    """The columns by which a row of the rule's answer is the same row as before."""
    select = parse_query(rule.query, rule.query_origin)
    names = tuple(output.name for output in view.outputs)
    if group := select.args.get("group"):
        grouped = {sql_of(item).lower() for item in group.expressions}
        items = [(i.alias_or_name, sql_of(i.unalias()).lower()) for i in select.expressions]
        return tuple(n for n, sql in items if sql in grouped or n.lower() in grouped) or names
    if any(aggregates_in(item) for item in select.expressions):
        return ()
    source = plan.view(view.reads[0]) if len(view.reads) == 1 else None
    keys = keys_of(source) if source else None
    shown = _shown(select, names)
    known = keys is not None and all(key.lower() in shown for key in keys)
    return tuple(shown[key.lower()] for key in keys or ()) if known else names


def _session(rule: RuleDefinition, view: ViewPlan, plan: Plan) -> str | None:
    """The key of the rule's answer that is a session of the one view it reads."""
    source = plan.view(view.reads[0]) if len(view.reads) == 1 else None
    if source is None or source.joins is None:
        return None
    names = tuple(output.name for output in view.outputs)
    shown = _shown(parse_query(rule.query, rule.query_origin), names)
    known, keys = keys_of(source), _keys(rule, view, plan)
    if known is None or not all(shown.get(key.lower()) in keys for key in known):
        return None
    window = next(output.name for output in source.outputs if output.key == source.joins)
    return shown[window.lower()]


def _shown(select: exp.Query, names: tuple[str, ...]) -> dict[str, str]:
    """The name in the answer of each column that is selected as it is."""
    if any(item.is_star for item in select.expressions):
        return {name.lower(): name for name in names}
    plain = [i for i in select.expressions if isinstance(i.unalias(), exp.Column)]
    return {item.unalias().name.lower(): item.alias_or_name for item in plain}


def action_plan(
    project: Project, plan: Plan, rule: Notifier, action: ActionDefinition
) -> ActionPlan:
    """Where a notification goes; refused if it cannot get there."""
    if action.kind is Kind.WEBHOOK:
        _check_webhook(project, rule, action.target)
    elif action.kind is Kind.EMAIL:
        _check_mail(project, rule)
    elif action.kind is Kind.FILE:
        _check_file(project, plan, rule, action.target)
    elif action.kind is Kind.STREAM:
        return _into_stream(plan, rule, action)
    return ActionPlan(action.kind.value, action.target)


def _check_webhook(project: Project, rule: Notifier, url: str) -> None:
    notify, parts = project.settings.notify, urlsplit(url)
    host = (parts.hostname or "").lower()
    if parts.scheme != "https" and not notify.private:
        raise Unsupported(
            f"{rule.said} notifies '{url}', which is not https",
            hint="use https, or set notify.private = true for a network that is your own.",
            origin=rule.origin,
        )
    if host not in {name.lower() for name in notify.hosts}:
        raise Unsupported(
            f"{rule.said} notifies host '{host}', which notify.hosts does not name",
            hint=f'write in headrace.toml: [notify] hosts = ["{host}"]',
            origin=rule.origin,
        )


def _check_mail(project: Project, rule: Notifier) -> None:
    notify = project.settings.notify
    if not notify.smtp_host or not notify.smtp_from:
        raise Unsupported(
            f"{rule.said} notifies by e-mail, but no mail server is known",
            hint="set notify.smtp_host and notify.smtp_from in headrace.toml.",
            origin=rule.origin,
        )


def _check_file(project: Project, plan: Plan, rule: Notifier, target: str) -> None:
    path = output_file(project, target, rule.said, rule.origin)
    for sink in plan.sinks:
        if sink.into == "file" and (project.output / sink.target).resolve() == path:
            raise BadDefinition(
                f"{rule.said} and sink '{sink.name}' go into the same file '{target}'",
                origin=rule.origin,
            )


def _into_stream(plan: Plan, rule: Notifier, action: ActionDefinition) -> ActionPlan:
    stream = next((s for s in plan.streams if s.name.lower() == action.target.lower()), None)
    if stream is None:
        raise UnknownName(
            f"{rule.said} notifies stream '{action.target}', which takes no events",
            hint=f"there are: {', '.join(s.name for s in plan.streams)}.",
            origin=rule.origin,
        )
    if stream.id is None:
        raise Unsupported(
            f"{rule.said} notifies stream '{stream.name}', which has no id",
            hint="give the stream WITH (id = '…'); an alert that is sent again is known by it.",
            origin=rule.origin,
        )
    return ActionPlan(action.kind.value, stream.name, stream.id)
