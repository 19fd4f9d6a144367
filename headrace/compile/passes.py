"""The compiler: from a project and Spark's analyser to a plan. It has no side effects.

It is a list of passes, each from a context to the next: definitions -> resolved (names) -> split
(structure) -> lowered (types, partials) -> plan. Decision rules are expanded to a SELECT before
they are split. An error in one query does not stop the compilation of others, so that all errors
are reported at once. tests/plans has projects with their expected plans and error messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import msgspec
from sqlglot import exp

from headrace.compile.alert_rows import alert_select, with_row_time
from headrace.compile.analyser import Analyser
from headrace.compile.calls import read_call, to_spark_aggregates
from headrace.compile.carry import CarriedStream, is_carried
from headrace.compile.computed import analyse_stream, check_computed
from headrace.compile.context import CompileContext
from headrace.compile.decision_rules import expand_rules
from headrace.compile.derive import (
    all_tables,
    check_raw,
    check_stateless,
    event_time,
    flow_of,
    stream_join,
)
from headrace.compile.destinations import refuse_cycles, with_sinks
from headrace.compile.folds import carried_for, fold_below, inline_to_fold
from headrace.compile.kernel import kernel_of
from headrace.compile.plan import ColumnPlan, DerivedPlan, Plan, StreamPlan, TablePlan
from headrace.compile.resolve import ResolvedQuery, resolve, resolve_one
from headrace.compile.rules import errors_name_rules, ledger_view, rule_plans
from headrace.compile.stored_columns import reads_raw
from headrace.compile.views import mergeable_view, read_view
from headrace.compile.watches import (
    MATCHED,
    errors_name_watches,
    expanded,
    shape_plan,
    shape_watch,
    shapes_of,
    watch_plan,
)
from headrace.compile.window_functions import check_windows, to_spark_windows
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
    """Compile a project to its plan."""
    nothing = Plan(project.settings.name, (), (), (), ())
    context = CompileContext(expanded(project), analyser, processors, nothing)
    with errors_name_watches(project), errors_name_rules():
        for apply in PASSES:
            context = apply(context)
    return context.plan


def check_query(project: Project, query: QueryDefinition) -> None:
    """Check one query, as far as this is possible without Spark."""
    resolved = resolve_one(project, query)
    _check_words(resolved)
    if query.kind == "view" and not resolved.views:
        for item in resolved.select.expressions:
            for node in item.walk():
                read_call(node, query.query_origin)


def _check_words(resolved: ResolvedQuery) -> None:
    if resolved.definition.kind == "stream":
        check_stateless(resolved)
    elif not resolved.views:
        check_windows(resolved.select, resolved.definition.query_origin)


def resolve_names(context: CompileContext) -> CompileContext:
    """Resolve names, and sort the queries topologically."""
    project = context.project
    for stream in project.streams.values():
        check_computed(stream)
    schemas = {name: stream.schema for name, stream in project.streams.items()}
    schemas |= {name: table.schema for name, table in project.tables.items()}
    return replace(context, queries=resolve(project), schemas=schemas)


def plan_sources(context: CompileContext) -> CompileContext:
    """Plan streams and tables, and register them with Spark's analyser."""
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
    return context.with_plan(streams=tuple(streams), tables=tuple(tables))


def stream_plan(definition: StreamDefinition, project: Project, *, raw: bool = False) -> StreamPlan:
    """The plan of a declared stream."""
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


def read_joins(context: CompileContext) -> CompileContext:
    """Read the joins of streams and their time bounds."""
    joins = {
        name: stream_join(resolved, context.queries, context.project, context.schemas)
        for name, resolved in context.queries.items()
        if resolved.joined
    }
    return replace(context, joins=joins)


def compile_queries(context: CompileContext) -> CompileContext:
    """Compile derived streams and views; those that read a wrong one are skipped."""
    mistakes = context.mistakes
    for name, resolved in context.queries.items():
        if mistakes.wrong.intersection((*resolved.streams, *resolved.views)):
            mistakes.wrong.add(name)
            continue
        with mistakes.noted(name), errors_name_watches(context.project), errors_name_rules():
            context = _query(context, resolved)
    mistakes.end()
    return context


def _query(context: CompileContext, resolved: ResolvedQuery) -> CompileContext:
    if resolved.definition.rules:
        time = event_time(resolved.stream or "", context.queries, context.project)
        resolved = expand_rules(resolved, time, context.analyser.analyse)
        context = context.with_query(resolved)
    definition = resolved.definition
    name, origin = definition.name, definition.query_origin
    check_raw(resolved, context.queries, context.project)
    _check_words(resolved)
    if is_carried(resolved):
        carried = carried_for(context, resolved, name)
        context.analyser.analyse(sql_of(carried.select), origin, name)
        return _derived(context, resolved, carried.select, carried)
    text = to_spark_windows(definition.query, resolved.over_views or resolved.select)
    text = to_spark_aggregates(text, origin)
    if name.startswith(matches_of("")):
        # A watch needs the position of events, which is not in the text of a derived stream.
        text = sql_of(inline_to_fold(context, resolved, fold_below(context, resolved, name)))
    context.analyser.analyse(text, origin, name)
    if definition.kind == "stream":
        below = fold_below(context, resolved, name)
        return _derived(context, resolved, inline_to_fold(context, resolved, below), below)
    view = read_view(context, resolved) if resolved.views else mergeable_view(context, resolved)
    return context.with_view(view)


def _derived(
    context: CompileContext,
    resolved: ResolvedQuery,
    select: exp.Select,
    carried: CarriedStream | None,
) -> CompileContext:
    stream, tables = flow_of(resolved, context.queries), all_tables(resolved, context.queries)
    carry = carried.plan if carried else None
    plan = DerivedPlan(resolved.definition.name, stream, tables, sql_of(select), carry)
    return context.with_plan(derived=(*context.plan.derived, plan))


def raise_alerts(context: CompileContext) -> CompileContext:
    """Add a view of each rule's alerts, the view of all alerts, and one of each shape's matches."""
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


def _raised(
    context: CompileContext, stream: str, view: str, also: Mapping[str, str]
) -> CompileContext:
    """A view of the stream's rows as alerts."""
    said = context.queries[stream].definition
    columns = context.analyser.analyse(f"SELECT * FROM {stream}", said.query_origin)
    source, time = with_row_time(context.queries[stream], context.queries, context.project)
    select = alert_select(stream, columns, time, said.query_origin, also)
    kept = QueryDefinition(view, "view", sql_of(select), said.origin, said.query_origin)
    context = context.with_query(source)
    resolved = ResolvedQuery(kept, select, stream, stream, (), ())
    return context.with_view(mergeable_view(context, resolved))


def plan_actions(context: CompileContext) -> CompileContext:
    """Plan sinks, rules and watches; each kind reads those before it in the plan."""
    project = context.project
    context = replace(context, plan=with_sinks(project, context.plan))
    context = context.with_plan(rules=tuple(rule_plans(project, context.plan)))
    shapes = [shape_plan(context.plan, *shape) for shape in shapes_of(project).items()]
    context = context.with_plan(shapes=tuple(shapes))
    watches = [watch_plan(project, context.plan, shape_watch(w)) for w in project.watches.values()]
    context = context.with_plan(watches=tuple(watches))
    refuse_cycles(context.plan)
    return context


def choose_kernels(context: CompileContext) -> CompileContext:
    """Which views are computed without Spark SQL, and why the others are not."""
    streams = {stream.name: stream for stream in context.plan.streams}
    views = [
        msgspec.structs.replace(view, kernel=kernel_of(view, streams, context.schemas))
        if view.kept
        else view
        for view in context.plan.views
    ]
    return context.with_plan(views=tuple(views))


PASSES: tuple[Callable[[CompileContext], CompileContext], ...] = (
    resolve_names,
    plan_sources,
    read_joins,
    compile_queries,
    raise_alerts,
    plan_actions,
    choose_kernels,
)
