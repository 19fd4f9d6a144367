"""The status of a project, its streams, views, sinks, tables, rules and watches."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from headrace.access.caller import Caller
from headrace.api import needs
from headrace.api.get_request import Endpoint, GetRequest, RequestHandler
from headrace.api.read_access import may_read, may_read_all, may_read_node, readable
from headrace.api.resources.balance import Balance
from headrace.api.rule_service import RuleStatus
from headrace.compile.plan import ViewKind
from headrace.core.msgspec_types import prepare_types
from headrace.core.problems import Problem
from headrace.serving.watches import WatchCounts


class IdlePartition(msgspec.Struct, frozen=True):
    """A partition that does not hold the watermark back, because it has no events."""

    partition: int
    since: str


class StreamStatus(msgspec.Struct, frozen=True):
    """The status of one stream. Positions are one offset per partition."""

    name: str
    source: str
    end: list[int]  # of the log
    position: list[int]  # of speed
    archived: list[int]
    boundary: list[int]  # of batch
    generation: int
    lag_events: int  # between the log's end and speed
    late: int
    watermark: str | None
    balance: Balance
    last_epoch_ms: int | None = None
    problem: str | None = None
    watermark_gap_ms: int | None = None  # now less the watermark
    watermark_held_by: int | None = None  # the slowest partition of those that are not idle
    idle: list[IdlePartition] = []
    shed: int = 0  # skipped by speed since the beginning; batch counts them
    age_ms: int | None = None  # since the newest epoch was committed
    trigger_ms: int | None = None  # between the starts of two epochs


class ViewStatus(msgspec.Struct, frozen=True):
    name: str
    kind: str
    state: str  # live, building, read
    stream: str
    rows: int
    generation: int
    differences: int | None = None  # of the newest audit before promotion

    @property
    def kept(self) -> bool:
        """Whether there are rows of it to count."""
        return self.kind != ViewKind.READ


class SinkStatus(msgspec.Struct, frozen=True):
    """The progress of one sink. Numbers are those of panes."""

    name: str
    view: str
    into: str  # file out/x.jsonl, stream alerts
    guarantee: str
    sequence: int  # of the newest pane
    delivered: int
    waiting: int
    dropped: int  # changes of windows that were closed


class TableStatus(msgspec.Struct, frozen=True):
    """The version of a table that is in use: a short hash of its content."""

    name: str
    version: str
    loaded_at: str


class ProjectStatus(msgspec.Struct, frozen=True):
    """The status of a project."""

    name: str
    state: str  # starting, running, degraded, stopping, stopped
    reason: str
    started_at: str | None
    url: str | None
    streams: list[StreamStatus]
    views: list[ViewStatus]
    sinks: list[SinkStatus] = []
    tables: list[TableStatus] = []
    rules: list[RuleStatus] = []
    watches: WatchCounts | None = None
    problems: list[Problem] = []


class StatusRequest(GetRequest[ProjectStatus], frozen=True):
    """The status of the project, its streams and its views."""

    endpoint = Endpoint("/v1/status", "status", needs.reads(needs.NAMED), stored=True)

    def readable(self, service: RequestHandler, caller: Caller) -> ProjectStatus:
        return readable_status(service.ask(self), caller)


def readable_status(status: ProjectStatus, caller: Caller) -> ProjectStatus:
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


def _reads_about(caller: Caller, problem: Problem, sinks: list[SinkStatus]) -> bool:
    """Whether the caller may read the subject of a problem."""
    if problem.kind == "sink":
        return any(sink.name == problem.name for sink in sinks)
    return may_read_node(caller, problem.kind, problem.name)


def _without_hidden_problem(stream: StreamStatus, messages: set[str]) -> StreamStatus:
    """Without a problem of a flow if the caller may not read all of its streams."""
    return stream if stream.problem in messages else replace(stream, problem=None)


prepare_types(ProjectStatus)
