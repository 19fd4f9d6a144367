"""The compiler: a project and Spark's analyser in, a plan out. Nothing is changed by it.

It is a list of passes, each from a context to the next: definitions -> resolved (names) -> split
(structure) -> lowered (types, partials) -> plan. Rules are written out as a SELECT before they are
split. What is wrong with a query is noted, and the others are compiled, so that a user is told of
all mistakes at once. tests/plans holds projects beside the plans and the sentences they must give.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import msgspec
from sqlglot import exp

from headrace.compile.analyser import Analyser
from headrace.compile.calls import known_to_spark, read_call
from headrace.compile.carry import Carried, is_carried
from headrace.compile.computed import analyse_stream, check_computed
from headrace.compile.context import Context
from headrace.compile.decide import decided
from headrace.compile.derive import (
    all_tables,
    check_raw,
    check_stateless,
    event_time,
    flow_of,
    stream_join,
)
from headrace.compile.destinations import refuse_circles, with_sinks
from headrace.compile.folds import carried_for, fold_below, written_out
from headrace.compile.kernel import kernel_of
from headrace.compile.plan import ColumnPlan, DerivedPlan, Plan, StreamPlan, TablePlan
from headrace.compile.raised import dated, raised_rows
from headrace.compile.resolve import Resolved, resolve, resolve_one
from headrace.compile.rules import in_words_of_rules, ledger_view, rule_plans
from headrace.compile.stored import reads_raw
from headrace.compile.views import mergeable_view, read_view
from headrace.compile.watches import (
    MATCHED,
    expanded,
    in_words_of_watches,
    shape_plan,
    shaped,
    shapes_of,
    watch_plan,
)
from headrace.compile.window_words import check_windows, for_spark
from headrace.core.rule import matches_of, stream_of, view_of, watched_of
from headrace.define.definitions import QueryDefinition, StreamDefinition
from headrace.define.dialect import sql_of
from headrace.define.processors import NO_PROCESSORS, ProcessorDefinition
from headrace.define.project import Project


def compile_project(
    project: Project,
    analyser: Analyser,
    processors: Mapping[str, ProcessorDefinition] = NO_PROCESSORS,
) -> Plan:
    """Decide everything about a project."""
    nothing = Plan(project.settings.name, (), (), (), ())
    context = Context(expanded(project), analyser, processors, nothing)
    with in_words_of_watches(project), in_words_of_rules():
        for apply in PASSES:
            context = apply(context)
    return context.plan


def check_query(project: Project, query: QueryDefinition) -> None:
    """Refuse what is wrong with one query and can be told without Spark."""
    resolved = resolve_one(project, query)
    _check_words(resolved)
    if query.kind == "view" and not resolved.views:
        for item in resolved.select.expressions:
            for node in item.walk():
                read_call(node, query.query_origin)


def _check_words(resolved: Resolved) -> None:
    if resolved.definition.kind == "stream":
        check_stateless(resolved)
    elif not resolved.views:
        check_windows(resolved.select, resolved.definition.query_origin)


def resolve_names(context: Context) -> Context:
    """Queries in an order in which each comes after what it reads."""
    project = context.project
    for stream in project.streams.values():
        check_computed(stream)
    schemas = {name: stream.schema for name, stream in project.streams.items()}
    schemas |= {name: table.schema for name, table in project.tables.items()}
    return replace(context, queries=resolve(project), schemas=schemas)


def plan_sources(context: Context) -> Context:
    """Streams and tables, which are made known to Spark."""
    project, queries = context.project, context.queries.values()
    names_raw = any(resolved.names_raw for resolved in queries)
    for stream in project.streams.values():
        with context.mistakes.noted(stream.name):
            raw = reads_raw(stream.schema, named=names_raw)
            analyse_stream(stream, context.analyser, raw=raw and stream.format == "json")
    for table in project.tables.values():
        context.analyser.relation(table.name, table.schema.spark_ddl)
    with_raw = {name for resolved in queries for name in resolved.raw}
    streams = [stream_plan(s, project, raw=s.name in with_raw) for s in project.streams.values()]
    tables = map(TablePlan.of, project.tables.values())
    return context.planned(streams=tuple(streams), tables=tuple(tables))


def stream_plan(definition: StreamDefinition, project: Project, *, raw: bool = False) -> StreamPlan:
    """A source stream as its readers need it."""
    mark = definition.watermark
    times = {"ahead_us": mark.ahead_us, "idle_us": mark.idle_us} if mark else {}
    return StreamPlan(
        definition.name,
        tuple(map(ColumnPlan.of, definition.schema.columns)),
        definition.format,
        definition.partitions or project.settings.log.partitions,
        (mark.column, mark.delay_us) if mark else None,
        definition.key,
        definition.id,
        pace=definition.pace,
        raw=raw,
        **times,
    )


def read_joins(context: Context) -> Context:
    """How queries join streams, by the bounds of their conditions."""
    joins = {
        name: stream_join(resolved, context.queries, context.project, context.schemas)
        for name, resolved in context.queries.items()
        if resolved.joined
    }
    return replace(context, joins=joins)


def compile_queries(context: Context) -> Context:
    """Derived streams and views; of one that reads what is wrong nothing can be told."""
    mistakes = context.mistakes
    for name, resolved in context.queries.items():
        if mistakes.wrong.intersection((*resolved.streams, *resolved.views)):
            mistakes.wrong.add(name)
            continue
        with mistakes.noted(name), in_words_of_watches(context.project), in_words_of_rules():
            context = _query(context, resolved)
    mistakes.end()
    return context


def _query(context: Context, resolved: Resolved) -> Context:
    if resolved.definition.rules:
        time = event_time(resolved.stream or "", context.queries, context.project)
        resolved = decided(resolved, time, context.analyser.analyse)
        context = context.with_query(resolved)
    definition = resolved.definition
    name, origin = definition.name, definition.query_origin
    check_raw(resolved, context.queries, context.project)
    _check_words(resolved)
    if is_carried(resolved):
        carried = carried_for(context, resolved, name)
        context.analyser.analyse(sql_of(carried.select), origin, name)
        return _derived(context, resolved, carried.select, carried)
    text = for_spark(definition.query, resolved.over_views or resolved.select)
    text = known_to_spark(text, origin)
    if name.startswith(matches_of("")):
        # A watch asks for the place of events, which no text of a derived stream says.
        text = sql_of(written_out(context, resolved, fold_below(context, resolved, name)))
    context.analyser.analyse(text, origin, name)
    if definition.kind == "stream":
        below = fold_below(context, resolved, name)
        return _derived(context, resolved, written_out(context, resolved, below), below)
    view = read_view(context, resolved) if resolved.views else mergeable_view(context, resolved)
    return context.with_view(view)


def _derived(
    context: Context, resolved: Resolved, select: exp.Select, carried: Carried | None
) -> Context:
    stream, tables = flow_of(resolved, context.queries), all_tables(resolved, context.queries)
    carry = carried.plan if carried else None
    plan = DerivedPlan(resolved.definition.name, stream, tables, sql_of(select), carry)
    return context.planned(derived=(*context.plan.derived, plan))


def raise_alerts(context: Context) -> Context:
    """The alerts of each rule as a view, the ledger of all, and the matches of each shape."""
    project = context.project
    for rule in project.rules:
        # The SELECT of a rule that reads views is a view already.
        if stream_of(rule) in context.queries:
            context = _raised(context, stream_of(rule), view_of(rule), {})
    if project.rules or project.watches:
        context = context.with_view(ledger_view())
    for key in shapes_of(project):
        context = _raised(context, matches_of(key), watched_of(key), MATCHED)
    return context


def _raised(context: Context, stream: str, view: str, also: Mapping[str, str]) -> Context:
    """A view of the stream's rows as alerts."""
    said = context.queries[stream].definition
    columns = context.analyser.analyse(f"SELECT * FROM {stream}", said.query_origin)
    source, time = dated(context.queries[stream], context.queries, context.project)
    select = raised_rows(stream, columns, time, said.query_origin, also)
    kept = QueryDefinition(view, "view", sql_of(select), said.origin, said.query_origin)
    context = context.with_query(source)
    resolved = Resolved(kept, select, stream, stream, (), ())
    return context.with_view(mergeable_view(context, resolved))


def plan_actions(context: Context) -> Context:
    """What is done with the answers; each kind finds those before it in the plan."""
    project = context.project
    context = replace(context, plan=with_sinks(project, context.plan))
    context = context.planned(rules=tuple(rule_plans(project, context.plan)))
    shapes = [shape_plan(context.plan, *shape) for shape in shapes_of(project).items()]
    context = context.planned(shapes=tuple(shapes))
    watches = [watch_plan(project, context.plan, shaped(w)) for w in project.watches.values()]
    context = context.planned(watches=tuple(watches))
    refuse_circles(context.plan)
    return context


def choose_kernels(context: Context) -> Context:
    """Which views are computed without Spark SQL, and why the others are not."""
    streams = {stream.name: stream for stream in context.plan.streams}
    views = [
        msgspec.structs.replace(view, kernel=kernel_of(view, streams, context.schemas))
        if view.kept
        else view
        for view in context.plan.views
    ]
    return context.planned(views=tuple(views))


PASSES: tuple[Callable[[Context], Context], ...] = (
    resolve_names,
    plan_sources,
    read_joins,
    compile_queries,
    raise_alerts,
    plan_actions,
    choose_kernels,
)
