"""The destinations of sinks, rules and watches: each must be valid, and cycles are refused.

The last line of a sink's file is its checkpoint, so the file has no other writer. A stream that
receives its own events back through sinks, rules and watches would loop endlessly, so cycles are
refused. tests/compile/test_sinks.py and tests/compile/test_rules.py read each error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from headrace.compile.plan import Plan, SinkPlan, WatchPlan
from headrace.compile.view_subscription import shape_of
from headrace.core.errors import BadDefinition, HeadraceError, UnknownName, Unsupported
from headrace.define.definitions import Sender, SinkDefinition
from headrace.define.project import Project
from headrace.destination.kinds import Destination


def with_sinks(project: Project, plan: Plan) -> Plan:
    """The plan with its sinks, in the order of their definitions."""
    for sink in project.sinks.values():
        made = _sink_plan(project, plan, sink)
        plan = msgspec.structs.replace(plan, sinks=(*plan.sinks, made))
    return plan


def _sink_plan(project: Project, plan: Plan, sink: SinkDefinition) -> SinkPlan:
    try:
        shape = shape_of(plan, sink.subscription)
    except HeadraceError as error:
        kind = UnknownName if plan.view(sink.subscription.view) is None else Unsupported
        raise kind(
            f"{sink.said}: {error.message}",
            detail=error.detail,
            hint=error.hint,
            origin=sink.origin,
        ) from error
    (destination,) = destinations_of(project, plan, sink)
    return SinkPlan(
        sink.name, sink.subscription, shape, destination, sink.guarantee, str(sink.origin)
    )


def destinations_of(project: Project, plan: Plan, sender: Sender) -> tuple[Destination, ...]:
    """The destinations of a sender; refused if not valid, or if a sink of the plan writes there."""
    check_destinations(project, sender)
    for destination in sender.destinations:
        _refuse_shared(project, plan, sender, destination)
    streams = {stream.name: stream.id for stream in plan.streams}
    return tuple(one.resolved(streams, sender) for one in sender.destinations)


def check_destinations(project: Project, sender: Sender) -> None:
    """Check each destination of a sender by itself."""
    for destination in sender.destinations:
        destination.check(project, sender)


def _refuse_shared(project: Project, plan: Plan, sender: Sender, destination: Destination) -> None:
    target = destination.exclusive_target(project)
    for sink in plan.sinks:
        if target is not None and sink.destination.exclusive_target(project) == target:
            raise BadDefinition(
                f"{sender.said} and sink '{sink.name}' write to the same {destination.kind} "
                f"'{destination.target}'",
                origin=sender.origin,
            )


def refuse_cycles(plan: Plan, more: Sequence[WatchPlan] = ()) -> None:
    """Refuse cycles of streams through sinks, rules and watches, those of the plan and `more`."""
    edges = list(_edges(plan, (*plan.watches, *more)))
    next_streams: dict[str, set[str]] = {}
    for _, sources, target, _ in edges:
        for stream in sources:
            next_streams.setdefault(stream, set()).add(target)
    for who, sources, target, origin in edges:
        if _reachable(target, next_streams) & {*sources}:
            reads = "its view reads" if who.startswith("sink") else "it reads"
            raise BadDefinition(
                f"{who} is circular: {reads} events that come from stream '{target}'", origin=origin
            )


def _edges(
    plan: Plan, watches: Sequence[WatchPlan]
) -> Iterator[tuple[str, tuple[str, ...], str, str]]:
    """Each sender of events to a stream: the streams it reads, the stream it writes, its origin."""
    read = {shape.name: shape.streams for shape in plan.shapes}
    senders: list[tuple[str, tuple[str, ...], tuple[Destination, ...], str]] = [
        *((f"sink '{s.name}'", s.shape.streams, (s.destination,), s.origin) for s in plan.sinks),
        *((f"rule '{r.name}'", r.streams, r.destinations, r.origin) for r in plan.rules),
        *((f"watch '{w.name}'", read.get(w.shape, ()), w.destinations, w.origin) for w in watches),
    ]
    for who, sources, destinations, origin in senders:
        yield from ((who, sources, to.target, origin) for to in destinations if to.feeds)


def _reachable(start: str, next_streams: dict[str, set[str]]) -> set[str]:
    found, waiting = {start}, [start]
    while waiting:
        more = next_streams.get(waiting.pop(), set()) - found
        found |= more
        waiting += more
    return found
