"""The metrics and the health of each node of the graph.

Each method reads the metrics of one kind of node and derives its health. Problems that a node
inherits along the edges are added later (headrace/run/observatory/topology.py).
tests/run/test_topology.py reads the health of each kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from statistics import fmean

from headrace.api.resources.status import ProjectStatus, StreamStatus
from headrace.api.resources.topology import Detail, Health
from headrace.compile.plan import Plan
from headrace.core.position import Position
from headrace.core.problems import Problem, ProblemKey
from headrace.core.rule import view_of
from headrace.core.time import MILLISECOND, MINUTE, duration_text
from headrace.define.definitions import PaceDefinition
from headrace.define.pace import with_pace
from headrace.run.observatory.abandoned_patterns import abandoned_text
from headrace.run.observatory.graph import GraphNode
from headrace.run.observatory.observed_project import ObservedProject
from headrace.run.observatory.oldest_wait import oldest_wait_ms
from headrace.serving.history import read_epochs
from headrace.serving.store import VersionStatus
from headrace.serving.watches import WatchStatus

_BATCH = ("archive", "batch", "tidy")
_OK: tuple[Health, str] = "ok", ""
BAD_WAITS = 6  # a wait this many times longer than that of a warning is bad
ARCHIVE_INTERVALS_MAX = 6
EPOCHS_MEASURED = 10
BUSY_US = MINUTE  # after this time without an epoch, there is no saturation


@dataclass(frozen=True, slots=True)
class NodeMetrics:
    """The metrics of a node, and its health."""

    health: Health = "ok"
    reason: str = ""
    lag_events: int | None = None
    lag_ms: int | None = None
    watermark_gap_ms: int | None = None
    saturation: float | None = None
    detail: Detail = field(default_factory=dict)
    what: str = ""  # which aspect of the node has a problem
    since: str | None = None
    reported: ProblemKey | None = None  # of the problem that the health is of, if it was reported

    def with_problem(self, problem: Problem | None) -> NodeMetrics:
        """The same with the health of a reported problem, if there is one."""
        if problem is None:
            return self
        return replace(
            self,
            health=problem.level,
            reason=problem.message,
            what=problem.what,
            since=problem.since,
            reported=problem.key,
        )


class NodeMetricsReader:
    """Reads the metrics of the nodes of one snapshot of the status."""

    def __init__(
        self,
        service: ObservedProject,
        plan: Plan,
        status: ProjectStatus,
        watches: list[WatchStatus],
    ):
        self.service, self.plan, self.status = service, plan, status
        runtime = service.runtime_info()
        self.running, self.problems = runtime.running, runtime.problems
        self.streams = {stream.name: stream for stream in status.streams}
        self.watches = {watch.name: watch for watch in watches}
        self.now_us = service.store.clock()

    def metrics(self, node: GraphNode) -> NodeMetrics:
        read: Callable[[str], NodeMetrics] = getattr(self, f"_{node.kind}")
        return read(node.name)

    def _problem(self, kind: str, name: str, *whats: str) -> Problem | None:
        """The reported problem of a node, or of some aspects of it; bad ones before warnings."""
        own = [one for one in self.problems if (one.kind, one.name) == (kind, name)]
        found = [one for one in own if not whats or one.what in whats]
        return min(found, key=lambda one: one.level != "bad", default=None)

    def _source(self, name: str) -> NodeMetrics:
        metrics = NodeMetrics(detail={"source": self.streams[name].source})
        return metrics.with_problem(self._problem("source", name))

    def _log(self, name: str) -> NodeMetrics:
        balance = self.streams[name].balance
        off = f"the balance of stream '{name}' is off by {balance.off:,}" if balance.off else ""
        detail: Detail = {"accepted": balance.accepted, "in_log": balance.in_log}
        return NodeMetrics("bad" if off else "ok", off, detail=detail, what="balance")

    def _master(self, name: str) -> NodeMetrics:
        stream = self.streams[name]
        end, archived = Position(tuple(stream.end)), Position(tuple(stream.archived))
        waited = self._waited(stream, archived)
        allowed = ARCHIVE_INTERVALS_MAX * self.service.project.settings.archive.interval_us // 1000
        health, reason = _OK
        if waited is not None and waited > allowed:
            at_least = duration_text(allowed * MILLISECOND)
            health = "warn"
            reason = f"events of '{name}' have waited for the archive for more than {at_least}"
        balance = stream.balance
        detail: Detail = {
            "events": balance.events,
            "duplicates": balance.duplicates,
            "dead_letters": balance.dead_letters,
        }
        lag = end.latest(archived) - archived
        metrics = NodeMetrics(health, reason, lag, waited, detail=detail, what="waiting")
        return metrics.with_problem(self._problem("flow", name, *_BATCH))

    def _waited(self, stream: StreamStatus, position: Position) -> int | None:
        reader = self.service.log_reader(self.plan.stream(stream.name))
        return oldest_wait_ms(reader, position, Position(tuple(stream.end)), self.now_us)

    def _speed(self, flow: str) -> NodeMetrics:
        state = self.service.store.stream(flow)
        ends = [self.streams[stream.name] for stream in state.plan.streams]
        pairs = list(zip(ends, state.plan.positions(state.position), strict=True))
        lag = sum(Position(tuple(s.end)).latest(p) - p for s, p in pairs)
        waits = [self._waited(stream, position) for stream, position in pairs]
        waited = None if None in waits else max(wait or 0 for wait in waits)
        mark, (epoch_ms, saturation) = state.reached.watermark_us, self._epoch_time(flow)
        health, reason = self._speed_health(flow, waited, saturation)
        detail: Detail = {
            "epoch_ms": epoch_ms,
            "generation": state.generation,
            "late": sum(stream.late for stream in ends),
            "shed": state.shed,
            "idle_partitions": sum(len(stream.idle) for stream in ends),
        }
        gap = (self.now_us - mark) // 1000 if mark is not None else None
        metrics = NodeMetrics(health, reason, lag, waited, gap, saturation, detail, "waiting")
        # A joined flow has only this node, so the problems of its batch are shown here too.
        whats = ("speed", *_BATCH) if state.plan.joined else ("speed",)
        return metrics.with_problem(self._problem("flow", flow, *whats))

    def _epoch_time(self, flow: str) -> tuple[float | None, float | None]:
        """The mean duration of an epoch, and its share of the trigger interval while it is busy."""
        trigger_us = self._trigger_us(flow)
        with self.service.store.read() as db:
            epochs = list(read_epochs(db, flow, EPOCHS_MEASURED))
        if not epochs:
            return None, None
        took_us = fmean(epoch.committed_at - epoch.started_at for epoch in epochs)
        busy = trigger_us and self.now_us - epochs[0].committed_at < BUSY_US
        return round(took_us / 1000, 1), round(took_us / trigger_us, 3) if busy else None

    def _trigger_us(self, flow: str) -> int:
        streams = self.service.store.stream(flow).plan.streams
        pace = streams[0].pace if len(streams) == 1 else PaceDefinition()
        return with_pace(self.service.project.settings.speed, pace).trigger_us

    def _speed_health(
        self, flow: str, waited: int | None, saturation: float | None
    ) -> tuple[Health, str]:
        allowed_us = self.service.project.settings.watchdog.wait_us + self._trigger_us(flow)
        if waited is not None and waited * 1000 > allowed_us:
            far = waited * 1000 > BAD_WAITS * allowed_us
            at_least = duration_text(BAD_WAITS * allowed_us if far else allowed_us)
            reason = f"events of '{flow}' have waited for speed for more than {at_least}"
            return "bad" if far else "warn", reason
        if saturation is not None and saturation >= 1:
            return "warn", f"an epoch of '{flow}' takes longer than the trigger interval"
        return _OK

    def _stream(self, name: str) -> NodeMetrics:
        return NodeMetrics()

    def _table(self, name: str) -> NodeMetrics:
        table = next((table for table in self.status.tables if table.name == name), None)
        detail: Detail = {"version": table.version, "loaded_at": table.loaded_at} if table else {}
        return NodeMetrics(detail=detail).with_problem(self._problem("table", name))

    def _view(self, name: str) -> NodeMetrics:
        view = next(view for view in self.status.views if view.name == name)
        detail: Detail = {
            "kind": view.kind,
            "state": view.state,
            "rows": view.rows,
            "generation": view.generation,
            "differences": view.differences,
        }
        if view.differences:
            reason = f"the audit found {view.differences:,} differences"
            return NodeMetrics("bad", reason, detail=detail, what="audit")
        if view.state == VersionStatus.BUILDING and self.running:
            return NodeMetrics("warn", f"view '{name}' is being built", detail=detail, what="build")
        if reason := self._abandoned(name):
            return NodeMetrics("warn", reason, detail=detail, what="pattern")
        return NodeMetrics(detail=detail)

    def _abandoned(self, view: str) -> str:
        """The sentence about keys for which the search for the view's pattern was given up."""
        plan = self.plan.view(view)
        with self.service.store.read() as db:
            return abandoned_text(db, plan) if plan else ""

    def _rule(self, name: str) -> NodeMetrics:
        rule = next((rule for rule in self.status.rules if rule.name == name), None)
        if rule is None:
            return NodeMetrics("idle")
        counts = rule.numbers
        detail: Detail = {"alerts": counts.alerts, "open": counts.open, "failed": counts.failed}
        detail |= {"waiting": counts.waiting, "severity": rule.severity}
        if problem := self._rule_problem(name):
            return NodeMetrics(detail=detail).with_problem(problem)
        if rule.state != "enabled":
            return NodeMetrics("idle", f"rule '{name}' is disabled", detail=detail)
        if counts.failed:
            reason = f"{counts.failed:,} notifications have failed"
            return NodeMetrics("warn", reason, detail=detail, what="notifications")
        if reason := self._abandoned(view_of(name)):
            return NodeMetrics("warn", reason, detail=detail, what="pattern")
        return NodeMetrics(detail=detail)

    def _rule_problem(self, name: str) -> Problem | None:
        """The problem of the rule, or of a destination that it notifies, which is not a node."""
        rules = [rule for rule in self.plan.rules if rule.name == name]
        names = (destination.name for rule in rules for destination in rule.destinations)
        notified = (self._problem("action", name) for name in names)
        return self._problem("rule", name) or next(filter(None, notified), None)

    def _watch(self, name: str) -> NodeMetrics:
        watch = self.watches[name]
        return NodeMetrics(detail={"matches": watch.matches, "severity": watch.severity})

    def _sink(self, name: str) -> NodeMetrics:
        sink = next(sink for sink in self.status.sinks if sink.name == name)
        detail: Detail = {
            "delivered": sink.delivered,
            "dropped": sink.dropped,
            "guarantee": sink.guarantee,
        }
        metrics = NodeMetrics(lag_events=sink.waiting, detail=detail)
        return metrics.with_problem(self._problem("sink", name))
