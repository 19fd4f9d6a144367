"""Where a query has a fold below it: a carried stream, or a window in the order of events.

Each reader of a carried stream has a fold of its own, so that its state goes with its rows. There
is one fold below a query, over one stream. tests/plans/error_spark_over_*.sql hold what is refused.
"""

from __future__ import annotations

from sqlglot import exp

from headrace.compile.carry import Carried, carried_stream, is_carried, numbered
from headrace.compile.context import Context
from headrace.compile.derive import NOTHING, base_streams, inlined, streams_below
from headrace.compile.lower import Fold
from headrace.compile.matched import matched_stream
from headrace.compile.processed import processed_stream
from headrace.compile.resolve import Resolved
from headrace.compile.thresholds import threshold_stream
from headrace.core.errors import UnknownName, Unsupported
from headrace.define.processors import ProcessorDefinition


def carried_for(context: Context, resolved: Resolved, reader: str) -> Carried:
    """A carried stream as `reader` reads it."""
    if below := _carried_below(context, resolved):
        raise Unsupported(
            f"stream '{resolved.definition.name}' carries what stream "
            f"'{below[0].definition.name}' has carried already",
            hint="have all running values in one stream.",
            origin=resolved.definition.query_origin,
        )
    refuse_joined(context, resolved)
    time, source = _time(context, resolved), inlined(resolved, context.queries)
    name, analyse = f"_carried_{reader}", context.analyser.analyse
    if resolved.definition.processor:
        processor = _processor(context, resolved)
        made = processed_stream(resolved, source, time, name, processor, analyse)
    elif resolved.definition.match:
        steps_max = context.project.settings.pattern.steps_max
        made = matched_stream(resolved, source, time, name, analyse, steps_max=steps_max)
    elif resolved.definition.threshold:
        made = threshold_stream(resolved, source, time, name, analyse)
    else:
        made = carried_stream(resolved, source, time, name, analyse)
    context.analyser.relation(made.plan.name, made.ddl)
    return made


def fold_below(context: Context, resolved: Resolved, reader: str) -> Carried | None:
    """The carried stream that a query reads, directly or through others."""
    below = _carried_below(context, resolved)
    return carried_for(context, below[0], reader) if below else None


def written_out(context: Context, resolved: Resolved, carried: Carried | None) -> exp.Select:
    """The query with all streams below written out, down to the fold if there is one."""
    below = _carried_below(context, resolved)
    known = {below[0].definition.name: carried.select} if carried and below else NOTHING
    return inlined(resolved, context.queries, written=known)


def numbering(context: Context, resolved: Resolved) -> Fold:
    """The fold of a view with a window that needs its events in order."""
    name = f"_carried_{resolved.definition.name}"
    return numbered(name, _time(context, resolved), resolved.stream_alias)


def refuse_joined(context: Context, resolved: Resolved) -> None:
    """Events of two streams have no order between them."""
    if len(base_streams(resolved, context.queries)) > 1:
        raise Unsupported(
            f"'{resolved.definition.name}' needs the events of joined streams in order",
            hint="running values and processors take one stream; join what they make.",
            origin=resolved.definition.query_origin,
        )


def _carried_below(context: Context, resolved: Resolved) -> list[Resolved]:
    return [stream for stream in streams_below(resolved, context.queries) if is_carried(stream)]


def _time(context: Context, resolved: Resolved) -> str | None:
    mark = context.base(resolved).watermark
    return mark.column if mark else None


def _processor(context: Context, resolved: Resolved) -> ProcessorDefinition:
    call = resolved.definition.processor
    assert call is not None
    if found := context.processors.get(call.name.lower()):
        return found
    raise UnknownName(
        f"stream '{resolved.definition.name}' calls the processor '{call.name}', "
        "which is not defined",
        hint="processors are classes of functions.py with @processor(…).",
        origin=resolved.definition.query_origin,
    )
