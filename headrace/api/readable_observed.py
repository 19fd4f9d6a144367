"""What is observed, cut down to what a caller may read.

What is left names nothing else: edges end where the caller may look, and neither a cause that
cannot be seen nor a dependent is told. A definition stays whole: it is part of what is read.
tests/api/test_readable_observed.py cuts each.
"""

from __future__ import annotations

from msgspec.structs import replace

from headrace.access.caller import Caller
from headrace.access.object import object_of
from headrace.access.operation import Operation
from headrace.api.observatory import Observatory
from headrace.api.observed.about import About
from headrace.api.observed.catalog import Catalog
from headrace.api.observed.epochs import Epochs, GenerationShape
from headrace.api.observed.events import EventTrace
from headrace.api.observed.quality import Quality
from headrace.api.observed.topology import Node, Topology
from headrace.api.readable import readable, reads, reads_all
from headrace.compile.lineage import Lineage

_KINDS = {
    "source": "stream",
    "log": "stream",
    "master": "stream",
    "stream": "stream",
    "table": "table",
    "view": "view",
    "rule": "rule",
    "watch": "rule",
}


def readable_topology(topology: Topology, caller: Caller) -> Topology:
    if reads_all(caller):
        return topology
    seen = {node.id for node in topology.nodes if _reads_node(caller, node)}
    # A sink is its view's, as in the status.
    seen |= {e.target for e in topology.edges if e.target.startswith("sink:") and e.source in seen}
    nodes = [_explained_within(node, seen) for node in topology.nodes if node.id in seen]
    edges = [edge for edge in topology.edges if edge.source in seen and edge.target in seen]
    return replace(topology, nodes=nodes, edges=edges)


def _reads_node(caller: Caller, node: Node) -> bool:
    if node.kind == "speed":
        return reads_flow(caller, node.name)
    return node.kind in _KINDS and reads(caller, _KINDS[node.kind], node.name)


def reads_flow(caller: Caller, flow: str) -> bool:
    """Whether the caller may read each stream of a flow."""
    return all(reads(caller, "stream", stream) for stream in flow.split("+"))


def _explained_within(node: Node, seen: set[str]) -> Node:
    hidden = node.cause is not None and node.cause not in seen
    return replace(node, cause=None, reason="") if hidden else node


def readable_catalog(catalog: Catalog, caller: Caller) -> Catalog:
    if reads_all(caller):
        return catalog
    return replace(
        catalog,
        streams=readable("stream", catalog.streams, caller),
        tables=readable("table", catalog.tables, caller),
        views=readable("view", catalog.views, caller),
        rules=readable("rule", catalog.rules, caller),
        watches=readable("rule", catalog.watches, caller),
        sinks=[sink for sink in catalog.sinks if reads(caller, "view", sink.view)],
    )


def readable_lineage(observatory: Observatory, caller: Caller) -> Lineage:
    lineage = observatory.lineage()
    if reads_all(caller):
        return lineage
    seen = _names(readable_catalog(observatory.catalog(), caller))
    columns = [
        replace(column, sources=[source for source in column.sources if source.object in seen])
        for column in lineage.columns
        if column.object in seen
    ]
    touched = lineage.touched_by.items()
    return Lineage(
        columns, {n: [u for u in users if u in seen] for n, users in touched if n in seen}
    )


def _names(catalog: Catalog) -> set[str]:
    kinds = (
        catalog.streams,
        catalog.tables,
        catalog.views,
        catalog.rules,
        catalog.watches,
        catalog.sinks,
    )
    return {one.name for kind in kinds for one in kind}


def readable_about(observatory: Observatory, view: str, caller: Caller) -> About:
    about = observatory.about(view)
    if reads_all(caller):
        return about
    seen = _names(readable_catalog(observatory.catalog(), caller))
    return replace(about, touches=[name for name in about.touches if name in seen])


def readable_quality(quality: Quality, caller: Caller) -> Quality:
    return replace(quality, streams=readable("stream", quality.streams, caller))


def readable_epochs(
    observatory: Observatory, stream: str | None, limit: int, caller: Caller
) -> Epochs:
    """The newest of one flow, which the caller must be allowed to read, or of those that they may
    read.
    """
    for name in stream.split("+") if stream is not None else ():
        caller.check(Operation.READ, object_of("stream", name))
    if stream is not None or reads_all(caller):
        return _with_readable_audits(observatory.epochs(stream, limit), caller)
    catalog = observatory.catalog()
    flows = [s.name for s in catalog.streams if s.kind == "declared"]
    flows += [view.stream for view in catalog.views if view.stream]
    wanted = [flow for flow in dict.fromkeys(flows) if reads_flow(caller, flow)]
    found = [observatory.epochs(flow, limit) for flow in wanted]
    epochs = [epoch for one in found for epoch in one.epochs]
    generations = [generation for one in found for generation in one.generations]
    newest = Epochs(
        sorted(epochs, key=lambda epoch: epoch.number, reverse=True)[:limit],
        sorted(generations, key=lambda generation: generation.at, reverse=True)[:limit],
    )
    return _with_readable_audits(newest, caller)


def _with_readable_audits(epochs: Epochs, caller: Caller) -> Epochs:
    if reads_all(caller):
        return epochs
    return replace(epochs, generations=[_audited(one, caller) for one in epochs.generations])


def _audited(generation: GenerationShape, caller: Caller) -> GenerationShape:
    audits = [audit for audit in generation.audits if reads(caller, "view", audit.view)]
    return replace(generation, audits=audits)


def readable_trace(trace: EventTrace, caller: Caller) -> EventTrace:
    """An event is its stream's; the rows that it counts in are its views', and its alerts its
    rules'.
    """
    views = [counted for counted in trace.views if reads(caller, "view", counted.view)]
    alerts = [alert for alert in trace.alerts if reads(caller, "rule", alert.rule)]
    return replace(trace, views=views, alerts=alerts)
