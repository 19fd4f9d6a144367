"""Where sinks, rules and watches send: each must be able to get there, and none feeds itself.

A sink must be able to tell its view. A file's last line says how far its sink has come, so the file
of a sink has no other writer. A stream whose events come back to it over sinks, rules and watches
would feed itself for ever, so circles are refused. tests/compile/test_sinks.py and
tests/compile/test_rules.py read each refusal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from headrace.compile.plan import Plan, SinkPlan, WatchPlan
from headrace.compile.subscribe import shape_of
from headrace.core.errors import BadDefinition, HeadraceError, UnknownName, Unsupported
from headrace.define.definitions import Sender, SinkDefinition
from headrace.define.project import Project
from headrace.destination.kinds import Destination


def with_sinks(project: Project, plan: Plan) -> Plan:
    """The plan with what each sink does, in the order in which they were said."""
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
    """Where one sends; refused if it cannot get there, or goes where a sink of the plan does."""
    check_destinations(project, sender)
    for destination in sender.destinations:
        _refuse_shared(project, plan, sender, destination)
    streams = {stream.name: stream.id for stream in plan.streams}
    return tuple(one.resolved(streams, sender) for one in sender.destinations)


def check_destinations(project: Project, sender: Sender) -> None:
    """What can be said of a sender's destinations by themselves."""
    for destination in sender.destinations:
        destination.check(project, sender)


def _refuse_shared(project: Project, plan: Plan, sender: Sender, destination: Destination) -> None:
    target = destination.exclusive_target(project)
    for sink in plan.sinks:
        if target is not None and sink.destination.exclusive_target(project) == target:
            raise BadDefinition(
                f"{sender.said} and sink '{sink.name}' go into the same {destination.kind} "
                f"'{destination.target}'",
                origin=sender.origin,
            )


def refuse_circles(plan: Plan, more: Sequence[WatchPlan] = ()) -> None:
    """No stream may come back to itself over sinks, rules and watches, those of the plan and
    `more`.
    """
    roads = list(_roads(plan, (*plan.watches, *more)))
    next_streams: dict[str, set[str]] = {}
    for _, sources, target, _ in roads:
        for stream in sources:
            next_streams.setdefault(stream, set()).add(target)
    for who, sources, target, origin in roads:
        if _reachable(target, next_streams) & {*sources}:
            reads = "its view reads" if who.startswith("sink") else "it reads"
            raise BadDefinition(
                f"{who} goes round in a circle: {reads} events that come from stream '{target}'",
                origin=origin,
            )


def _roads(
    plan: Plan, watches: Sequence[WatchPlan]
) -> Iterator[tuple[str, tuple[str, ...], str, str]]:
    """Who sends events to a stream: of which streams they are, to which they go, and where it is
    said.
    """
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
