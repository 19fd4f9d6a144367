"""Sinks: each must be able to tell its view, and to go where it goes.

A sink into a stream whose events come back to its own view would feed itself for ever, so circles
over sinks are refused. Exactly once into a stream needs the stream's `id`, because a pane that is
sent again is known by it. tests/compile/test_sinks.py reads each refusal.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.compile.plan import Plan, SinkPlan, WatchPlan
from headrace.compile.subscribe import shape_of
from headrace.core.errors import BadDefinition, HeadraceError, UnknownName, Unsupported
from headrace.core.rule import Kind
from headrace.core.subscription import Guarantee
from headrace.define.definitions import SinkDefinition
from headrace.define.paths import output_file
from headrace.define.project import Project


def sink_plans(project: Project, plan: Plan) -> tuple[SinkPlan, ...]:
    """What each sink does, in the order in which they were said."""
    for sink in project.sinks.values():
        check_target(sink, project)
    made = tuple(_sink_plan(sink, plan) for sink in project.sinks.values())
    _refuse_shared_files(made, project)
    return made


def check_target(sink: SinkDefinition, project: Project) -> None:
    """A sink into a file writes into the output folder."""
    if sink.into == "file":
        output_file(project, sink.target, f"sink '{sink.name}'", sink.origin)


def _sink_plan(sink: SinkDefinition, plan: Plan) -> SinkPlan:
    try:
        shape = shape_of(plan, sink.subscription)
    except HeadraceError as error:
        kind = UnknownName if plan.view(sink.subscription.view) is None else Unsupported
        raise kind(
            f"sink '{sink.name}': {error.message}",
            detail=error.detail,
            hint=error.hint,
            origin=sink.origin,
        ) from error
    target, id = (sink.target, None) if sink.into == "file" else _stream(sink, plan)
    return SinkPlan(
        sink.name,
        sink.subscription,
        shape,
        sink.into,
        target,
        sink.guarantee,
        id,
        str(sink.origin),
    )


def _stream(sink: SinkDefinition, plan: Plan) -> tuple[str, str | None]:
    """The stream that a sink goes into, and its id if the sink needs it."""
    stream = next((s for s in plan.streams if s.name.lower() == sink.target.lower()), None)
    if stream is None:
        raise UnknownName(
            f"sink '{sink.name}' goes into '{sink.target}', which is no stream that takes events",
            hint=f"there are: {', '.join(s.name for s in plan.streams)}.",
            origin=sink.origin,
        )
    if sink.guarantee is not Guarantee.EXACTLY_ONCE:
        return stream.name, None
    if stream.id is None:
        raise Unsupported(
            f"sink '{sink.name}' is exactly once into stream '{stream.name}', which has no id",
            hint="give the stream WITH (id = '…'), or the sink guarantee = 'at_least_once'.",
            origin=sink.origin,
        )
    return stream.name, stream.id


def refuse_circles(plan: Plan, more: Sequence[WatchPlan] = ()) -> None:
    """No stream may come back to itself over sinks, rules and watches, those of the plan and
    `more`.
    """
    read = {shape.name: shape.streams for shape in plan.shapes}
    roads = [
        (f"sink '{sink.name}'", sink.shape.streams, sink.target, sink.origin)
        for sink in plan.sinks
        if sink.into == "stream"
    ] + [
        (f"rule '{rule.name}'", rule.streams, action.target, rule.origin)
        for rule in plan.rules
        for action in rule.actions
        if action.kind == Kind.STREAM
    ]
    roads += [
        (f"watch '{watch.name}'", read.get(watch.shape, ()), action.target, watch.origin)
        for watch in (*plan.watches, *more)
        for action in watch.actions
        if action.kind == Kind.STREAM
    ]
    next_streams: dict[str, set[str]] = {}
    for _, sources, target, _ in roads:
        for stream in sources:
            next_streams.setdefault(stream, set()).add(target)
    for what, sources, target, origin in roads:
        if _reachable(target, next_streams) & {*sources}:
            reads = "its view reads" if what.startswith("sink") else "it reads"
            raise BadDefinition(
                f"{what} goes round in a circle: {reads} events that come from stream '{target}'",
                origin=origin,
            )


def _reachable(start: str, next_streams: dict[str, set[str]]) -> set[str]:
    found, waiting = {start}, [start]
    while waiting:
        more = next_streams.get(waiting.pop(), set()) - found
        found |= more
        waiting += more
    return found


def _refuse_shared_files(sinks: tuple[SinkPlan, ...], project: Project) -> None:
    """A file's last line says how far its sink has come, so a file has one sink."""
    writers: dict[str, str] = {}
    for sink in sinks:
        if sink.into != "file":
            continue
        path = str((project.output / sink.target).resolve())
        other = writers.setdefault(path, sink.name)
        if other != sink.name:
            raise BadDefinition(
                f"sinks '{other}' and '{sink.name}' go into the same file '{sink.target}'",
                origin=project.sinks[sink.name].origin,
            )
