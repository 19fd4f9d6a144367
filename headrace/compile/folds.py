"""The fold of a query: that of a carried stream which it reads, or of a window over ordered events.

Each reader of a carried stream has its own fold, so that state and rows are consistent. A query has
at most one fold, over one stream. tests/plans/error_spark_over_*.sql and error_spark_processor_*
have what is refused; tests/transcripts/processor_*.yaml define what a processor means.
"""

from __future__ import annotations

from sqlglot import exp

from headrace.compile.carry import (
    CarriedStream,
    CarryCompiler,
    EventOrder,
    carried_rows,
    is_carried,
    window_fold,
)
from headrace.compile.context import CompileContext
from headrace.compile.derive import NO_STREAMS, base_streams, inline_streams, streams_below
from headrace.compile.fold_inputs import declared_keys
from headrace.compile.lower import Analyse, Fold, select_of
from headrace.compile.match_recognize import match_stream
from headrace.compile.plan import CarryPlan, ProcessorPlan
from headrace.compile.resolve import ResolvedQuery
from headrace.compile.thresholds import threshold_stream
from headrace.core.errors import UnknownName, Unsupported
from headrace.core.event import CUT, HIDDEN, TIME
from headrace.define.dialect import sql_of
from headrace.define.processors import ProcessorDefinition


def carried_for(context: CompileContext, resolved: ResolvedQuery, reader: str) -> CarriedStream:
    """A carried stream as `reader` reads it."""
    if below := _carried_below(context, resolved):
        raise Unsupported(
            f"stream '{resolved.definition.name}' is stateful and reads stream "
            f"'{below[0].definition.name}', which is stateful too",
            hint="compute all running aggregates in one stream.",
            origin=resolved.definition.query_origin,
        )
    refuse_joined(context, resolved)
    time, source = _time(context, resolved), inline_streams(resolved, context.queries)
    name, analyse = f"_carried_{reader}", context.analyser.analyse
    if resolved.definition.processor:
        processor = _processor(context, resolved)
        made = processor_stream(resolved, source, time, name, processor, analyse)
    elif resolved.definition.match:
        steps_max = context.project.settings.pattern.steps_max
        made = match_stream(resolved, source, time, name, analyse, steps_max=steps_max)
    elif resolved.definition.threshold:
        made = threshold_stream(resolved, source, time, name, analyse)
    else:
        made = CarryCompiler(resolved, source, time, name, analyse).compile()
    context.analyser.relation(made.plan.name, made.ddl)
    return made


def fold_below(
    context: CompileContext, resolved: ResolvedQuery, reader: str
) -> CarriedStream | None:
    """The carried stream that a query reads, directly or through others."""
    below = _carried_below(context, resolved)
    return carried_for(context, below[0], reader) if below else None


def inline_to_fold(
    context: CompileContext, resolved: ResolvedQuery, carried: CarriedStream | None
) -> exp.Select:
    """The query with all derived streams inlined, down to the fold if there is one."""
    below = _carried_below(context, resolved)
    known = {below[0].definition.name: carried.select} if carried and below else NO_STREAMS
    return inline_streams(resolved, context.queries, written=known)


def ordered_window_fold(context: CompileContext, resolved: ResolvedQuery) -> Fold:
    """The fold of a view with a window that needs its events in order."""
    name = f"_carried_{resolved.definition.name}"
    return window_fold(name, _time(context, resolved), resolved.stream_alias)


def refuse_joined(context: CompileContext, resolved: ResolvedQuery) -> None:
    """Events of two streams have no order between them."""
    if len(base_streams(resolved, context.queries)) > 1:
        raise Unsupported(
            f"'{resolved.definition.name}' requires its events in order, but events of joined "
            "streams have none",
            hint="let running aggregates and processors read one stream, and join their results.",
            origin=resolved.definition.query_origin,
        )


def _carried_below(context: CompileContext, resolved: ResolvedQuery) -> list[ResolvedQuery]:
    return [stream for stream in streams_below(resolved, context.queries) if is_carried(stream)]


def _time(context: CompileContext, resolved: ResolvedQuery) -> str | None:
    mark = context.base(resolved).watermark
    return mark.column if mark else None


def _processor(context: CompileContext, resolved: ResolvedQuery) -> ProcessorDefinition:
    call = resolved.definition.processor
    assert call is not None
    if found := context.processors.get(call.name.lower()):
        return found
    raise UnknownName(
        f"stream '{resolved.definition.name}' calls the processor '{call.name}', "
        "which is not defined",
        hint="define it in functions.py as a class with @processor(…).",
        origin=resolved.definition.query_origin,
    )


def processor_stream(
    resolved: ResolvedQuery,
    source: exp.Select,
    time: str | None,
    name: str,
    definition: ProcessorDefinition,
    analyse: Analyse,
) -> CarriedStream:
    """Compile a stream of a processor's rows, with the same three parts as any carried stream."""
    origin, call = resolved.definition.query_origin, resolved.definition.processor
    assert call is not None
    columns = [n for n, _ in analyse(sql_of(source), origin) if not n.startswith("_")]
    keys, alias = declared_keys(resolved, call.keys, columns), resolved.stream_alias
    time_us = f"unix_micros({alias}.{time})" if time else "0"
    order = EventOrder(tuple(f"{alias}.{key}" for key in keys), time_us, alias)
    items = [f"{alias}.{column} AS {column}" for column in (*HIDDEN, *columns)]
    sql = select_of(source, [*order.items(), *items], [f"{TIME} IS NOT NULL"])
    outputs = tuple((column, type.spark) for column, type in definition.outputs)
    plan = CarryPlan(name, sql, processor=ProcessorPlan(call.name, tuple(columns), outputs))
    passed = [*(f"`{column}`" for column, _ in outputs), *HIDDEN, CUT]
    return carried_rows(plan, passed, analyse, origin)
