"""The plan of one view, from its resolved query.

A mergeable view is split into a map, keys and aggregates, and a finish, and lowered to the SQL of
both layers. A view over views is compiled to the SQL that reads it. tests/plans has the results.
"""

from __future__ import annotations

import hashlib

from sqlglot import exp

from headrace.certified.relation import AnswerColumn, ReadRelation
from headrace.certified.select import compile_query
from headrace.compile.context import CompileContext
from headrace.compile.derive import (
    all_tables,
    base_streams,
    column_names,
    flow_of,
    inline_streams,
    join_below,
    passes_on,
    row_place,
    streams_below,
)
from headrace.compile.finish import answer_columns, typed_outputs
from headrace.compile.folds import fold_below, inline_to_fold, ordered_window_fold, refuse_joined
from headrace.compile.join import join_plan
from headrace.compile.lateness import LatenessParts, lateness_of
from headrace.compile.lower import lower_finish, lower_map, lower_output, lower_partials, select_of
from headrace.compile.plan import WINDOW, JoinPlan, KeyPlan, OutputPlan, ViewKind, ViewPlan, digest
from headrace.compile.resolve import ResolvedQuery
from headrace.compile.split import ViewParts, split
from headrace.core.errors import Unsupported
from headrace.core.event import CUT, HIDDEN, OFFSET, PARTITION
from headrace.core.schema import Schema
from headrace.define.dialect import sql_of


def mergeable_view(context: CompileContext, resolved: ResolvedQuery) -> ViewPlan:
    """A view that groups and aggregates a flow."""
    origin = resolved.definition.query_origin
    names = column_names(resolved, context.queries, context.schemas) | set(HIDDEN)
    carried = fold_below(context, resolved, resolved.definition.name)
    source = inline_to_fold(context, resolved, carried)

    def equal(one: str, other: str) -> bool:
        return context.analyser.equal(select_of(source, [f"{one} AS one", f"{other} AS other"]))

    parts = split(resolved.select, names, origin, equal)
    joining = join_below(resolved, context.queries, context.joins)
    rows = inline_streams(resolved, context.queries, context.joins) if joining else source
    place = f"{row_place(resolved, OFFSET)} * 65536 + {row_place(resolved, PARTITION)}"
    late = _lateness(context, resolved, parts)
    if any(group.ordered for group in parts.groups):
        refuse_joined(context, resolved)
    mapped = lower_map(
        parts,
        source,
        rows,
        place,
        _event_time(context, resolved),
        context.analyser.analyse,
        origin,
        cut=f"{resolved.stream_alias}.{CUT}" if carried else None,
        fold=ordered_window_fold(context, resolved),
        also=late.items,
    )
    partials, calls = lower_partials(parts, mapped)
    outputs = tuple(lower_output(name, item, parts, mapped) for name, item in parts.items)
    _refuse_repeats(outputs, mapped.keys, resolved)
    join = _join(context, joining) if joining else None
    plan = ViewPlan(
        resolved.definition.name,
        ViewKind.CARRIED if carried or mapped.carry else ViewKind.MERGEABLE,
        str(resolved.definition.origin),
        outputs,
        stream=flow_of(resolved, context.queries),
        tables=all_tables(resolved, context.queries),
        carry=carried.plan if carried else mapped.carry,
        map_sql=mapped.sql,
        keys=mapped.keys,
        partials=(*partials, *late.partials),
        calls=tuple(calls),
        having=lower_finish(parts.having) if parts.having else None,
        order=tuple(lower_finish(item) for item in parts.order),
        limit=parts.limit,
        inputs=_inputs(context, resolved),
        join=join,
        # The rows of an outer join depend on watermarks, which only this form uses.
        definition=sql_of(
            rows if join and join.withdrawn else inline_streams(resolved, context.queries)
        ),
    )
    return typed_outputs(plan, origin)


def _join(context: CompileContext, joining: ResolvedQuery) -> JoinPlan:
    select = inline_streams(joining, context.queries, context.joins)
    return join_plan(select, context.joins[joining.definition.name])


def read_view(context: CompileContext, resolved: ResolvedQuery) -> ViewPlan:
    """A view over views, which is not stored."""
    origin = resolved.definition.query_origin
    read = {view.name: view for view in context.plan.views}
    relations = {name.lower(): answer_columns(read[name]) for name in resolved.views}
    for name in resolved.tables:
        columns = context.project.tables[name].schema.columns
        relations[name.lower()] = tuple(AnswerColumn(c.name, c.type.spark) for c in columns)
    whole = resolved.over_views or resolved.select
    made = compile_query(
        whole,
        lambda name: ReadRelation(name, relations[name]) if name in relations else None,
        origin=origin,
    )
    outputs = tuple(
        OutputPlan(column.name, column.type, "", estimate=column.estimate, read_key=column.key)
        for column in made.columns
    )
    return ViewPlan(
        resolved.definition.name,
        ViewKind.READ,
        str(resolved.definition.origin),
        outputs,
        reads=resolved.views,
        tables=resolved.tables,
        read_sql=sql_of(whole),
    )


def _lateness(context: CompileContext, resolved: ResolvedQuery, parts: ViewParts) -> LatenessParts:
    """The lateness partials of the view; none for a join, whose rows have two events."""
    if len(base_streams(resolved, context.queries)) > 1:
        return LatenessParts()
    return lateness_of(parts, context.base(resolved), resolved.stream_alias)


def _event_time(context: CompileContext, resolved: ResolvedQuery) -> str | None:
    """SQL of the event time, by which events are ordered before their position; 0 if the stream has
    no watermark, None if a derived stream does not select it.
    """
    mark = context.base(resolved).watermark
    if mark is None:
        return "0L"
    passed = passes_on(resolved, context.queries, mark.column)
    return f"unix_micros({resolved.stream_alias}.{mark.column})" if passed else None


def _inputs(context: CompileContext, resolved: ResolvedQuery) -> str:
    """Fingerprint of the inputs that are not in the view's SQL."""
    bases = dict.fromkeys(base_streams(resolved, context.queries))
    # The expressions of computed columns are inlined into the view's SQL.
    streams = [_declared(context.project.streams[name].schema.stored) for name in bases]
    tables = [context.project.tables[name] for name in all_tables(resolved, context.queries)]
    functions = context.project.functions_file
    code = functions.read_bytes() if functions else b""
    # The view also depends on functions that only a derived stream calls.
    whole = inline_streams(resolved, context.queries)
    called = any(isinstance(node, exp.Anonymous) for node in whole.walk()) or any(
        below.definition.makes_rows for below in streams_below(resolved, context.queries)
    )
    return digest(
        [
            ", ".join(streams),
            [[t.schema.spark_ddl, t.format, t.location, sorted(t.options.items())] for t in tables],
            hashlib.sha256(code).hexdigest() if called else "",
        ]
    )


def _declared(schema: Schema) -> str:
    """The DDL of a schema with the clauses of its columns."""
    clauses = [f"{column.name} {said}" for column in schema.columns if (said := column.clauses)]
    return "; ".join([schema.spark_ddl, *clauses])


def _refuse_repeats(
    outputs: tuple[OutputPlan, ...], keys: tuple[KeyPlan, ...], resolved: ResolvedQuery
) -> None:
    seen: set[str] = set()
    windows = {key.column for key in keys if key.type == WINDOW}
    for output in outputs:
        # An answer as a table has two columns for a window.
        edges = {f"{output.name}_start", f"{output.name}_end"} if output.key in windows else set()
        names = {name.lower() for name in {output.name, *edges}}
        if names & seen:
            raise Unsupported(
                f"view '{resolved.definition.name}' has two columns named '{output.name}'",
                hint="give one of them another name with AS.",
                origin=resolved.definition.query_origin,
            )
        seen |= names
