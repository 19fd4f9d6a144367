"""Status and alerts, without what a caller may not read. tests/api/test_named.py checks them."""

from __future__ import annotations

from msgspec.structs import replace

from headrace.access.caller import Caller
from headrace.access.object import object_of
from headrace.access.operation import Operation
from headrace.api.read_access import may_read, may_read_all, may_read_node, readable
from headrace.api.resources.rules import RulesRequest
from headrace.api.resources.watches import WatchesRequest
from headrace.api.service import Service, SinkStatus
from headrace.api.shapes import ProblemReport, StatusReport, StreamReport
from headrace.serving.alerts import AlertFilter, Alerts


def readable_status(status: StatusReport, caller: Caller) -> StatusReport:
    """The status of what the caller may read, without the reason, which may name anything."""
    if may_read_all(caller):
        return status
    sinks = [sink for sink in status.sinks if may_read(caller, "view", sink.view)]
    problems = [one for one in status.problems if _reads_about(caller, one, sinks)]
    messages = {one.message for one in problems}
    return replace(
        status,
        reason="",
        streams=[
            _without_hidden_problem(one, messages)
            for one in readable("stream", status.streams, caller)
        ],
        views=readable("view", status.views, caller),
        sinks=sinks,
        tables=readable("table", status.tables, caller),
        rules=readable("rule", status.rules, caller),
        problems=problems,
    )


def _reads_about(caller: Caller, problem: ProblemReport, sinks: list[SinkStatus]) -> bool:
    """Whether the caller may read the subject of a problem."""
    if problem.kind == "sink":
        return any(sink.name == problem.name for sink in sinks)
    return may_read_node(caller, problem.kind, problem.name)


def _without_hidden_problem(stream: StreamReport, messages: set[str]) -> StreamReport:
    """Without a problem of a flow if the caller may not read all of its streams."""
    return stream if stream.problem in messages else replace(stream, problem=None)


def readable_alerts(service: Service, wanted: AlertFilter, caller: Caller) -> Alerts:
    """Alerts of the rules and watches that the caller may read, of one of them or of all."""
    if wanted.rule is not None:
        caller.check(Operation.READ, object_of("rule", wanted.rule))
    if wanted.rule is not None or may_read_all(caller):
        return service.rule_service.alerts(wanted)
    rules = readable("rule", service.ask(RulesRequest()).rules, caller)
    watches = readable("rule", service.ask(WatchesRequest()).watches, caller)
    names = dict.fromkeys([rule.name for rule in rules] + [watch.name for watch in watches])
    return service.rule_service.alerts(replace(wanted, among=tuple(names)))
