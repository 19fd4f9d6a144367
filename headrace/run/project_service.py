"""What `Instance` and `Offline` share: everything that is read from the project's store, master and
log.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec

from headrace.access.caller import OWNER, Caller
from headrace.access.object import Object
from headrace.api.get_request import A, GetRequest
from headrace.api.resources.balance import Balance
from headrace.api.resources.query import QueryPlan
from headrace.api.resources.status import (
    IdlePartition,
    ProjectStatus,
    SinkStatus,
    StreamStatus,
    TableStatus,
    ViewStatus,
)
from headrace.audit.oracle import audit_view
from headrace.compile.flow import whole
from headrace.compile.plan import Plan, StreamPlan, ViewPlan, WatchPlan
from headrace.core import meters
from headrace.core.errors import NotFound, Unavailable
from headrace.core.flow import stream_names
from headrace.core.position import Position
from headrace.core.problems import Problem
from headrace.core.rule import shown_name, view_of
from headrace.core.time import iso
from headrace.define.definitions import StreamDefinition
from headrace.define.functions import FunctionDefinition
from headrace.define.layout import Layout
from headrace.define.pace import with_pace
from headrace.define.project import Project
from headrace.define.stream_subscription import subscribed_name
from headrace.log.opening import open_reader
from headrace.log.protocol import LogReader
from headrace.master.balance import balance
from headrace.master.decoding import declared_schema
from headrace.master.table import MasterTable
from headrace.run.added_definitions import added_rules, with_rules, with_watches
from headrace.run.compiling import functions_of
from headrace.run.health import with_health
from headrace.run.observatory.abandoned_patterns import abandoned_text
from headrace.run.observatory.handlers import HANDLERS
from headrace.run.observatory.observed_project import AnyAnswer, ObservatoryCache, RuntimeInfo
from headrace.run.query_service import QueryService
from headrace.run.read_permission import object_named
from headrace.run.rule_service import Deployer, LocalRuleService
from headrace.run.watch_service import LocalWatchService
from headrace.serving.answer import Answer
from headrace.serving.catalog import required_plan
from headrace.serving.conditions import Keys
from headrace.serving.database_store import DatabaseStore
from headrace.serving.history import newest_audit, read_epochs, read_late
from headrace.serving.runs import count_keys
from headrace.serving.shed_epochs import count_shed_events
from headrace.serving.sinks import count_panes
from headrace.serving.store import AuditResult, VersionStatus
from headrace.serving.subscriber import OpenSubscription
from headrace.serving.watches import add

STOPPED = "the project is not running"


class ProjectService(Deployer):
    """Answers about a project from its store, master and log."""

    def __init__(self, project: Project, store: DatabaseStore) -> None:
        self.files, self.store, self.layout = project, store, Layout.of(project)
        rules = added_rules(store)
        self.added = frozenset(rules)  # names of the rules that were added at run time
        self.project = with_watches(with_rules(project, rules.values()), store)
        self.query_service = QueryService(project, store)
        changing = threading.Lock()
        self.rule_service = LocalRuleService(project, store, self, changing)
        self.watch_service = LocalWatchService(project, store, self, changing)
        self.cache = ObservatoryCache()
        self._masters: dict[StreamPlan, MasterTable] = {}

    def add_watches(self, plans: Sequence[WatchPlan], who: str) -> None:
        """Add watches of deployed shapes; those of a stopped project begin when it starts."""
        self.become_writer()
        with self.store.write() as db:
            for plan in plans:
                add(db, plan, True, who, self.store.clock(), None)

    # Queries

    def ask(self, question: GetRequest[A]) -> A:
        answer: A = HANDLERS[type(question)](self, question)
        return answer

    def live(
        self, topics: Sequence[str], news: Callable[[], None] = lambda: None
    ) -> OpenSubscription:
        raise Unavailable(
            "the project is not running, so nothing can be subscribed to",
            hint="start it with `headrace run`.",
        )

    def row(self, name: str, keys: Keys) -> Answer | None:
        with meters.QUERY_SECONDS.labels(meters.STORE).time():
            found = self.query_service.reader.row(name, keys)
            return self.with_behind(found) if found else None

    def sql(
        self, text: str, limit: int | None = None, id: str | None = None, caller: Caller = OWNER
    ) -> Answer:
        return self.with_behind(self.query_service.answer(text, limit, id, caller))

    def with_behind(self, answer: AnyAnswer) -> AnyAnswer:
        """The answer with the number of events of each stream that are in the log and not yet in
        the answer.
        """
        found = {
            name: msgspec.structs.replace(as_of, behind=self._behind(name, as_of.position))
            for name, as_of in answer.as_of.items()
        }
        return msgspec.structs.replace(answer, as_of=found)

    def _behind(self, flow: str, position: list[int]) -> int:
        # The streams are those of the flow's name, because reading its plan is slower.
        end = whole(self.log_end(name) for name in stream_names(_flow_of(flow)))
        at = Position(tuple(position))
        return end.latest(at) - at

    def log_end(self, stream: str) -> Position:
        """The position after the last event of a stream."""
        return open_reader(self.layout.log(stream)).end()

    def cancel(self, id: str, caller: Caller = OWNER) -> bool:
        return self.query_service.cancel(id, caller)

    def query_plan(self, text: str, caller: Caller = OWNER) -> QueryPlan:
        return self.query_service.plan(text, caller)

    def subscribed(self, text: str, caller: Caller) -> Object:
        return object_named(self.store.deployed(), subscribed_name(text), caller)

    def audit(self, view: str | None = None) -> list[AuditResult]:
        """Compare the answers with DuckDB over the same events."""
        plan = self.deployed()
        if view is not None and plan.view(view) is None:
            if plan.view(view_of(view)) is None:
                raise NotFound(f"there is no view or rule '{view}' to compare")
            view = view_of(view)
        # The constants of ended watches are removed, so their matches cannot be computed again;
        # the ledger has them.
        watched = {shape.view for shape in plan.shapes}
        stored = [v for v in plan.views if v.kept and v.name not in watched]
        wanted = [v for v in stored if view is None or v.name == view]
        if view is not None and not wanted:
            wanted = [v for v in plan.views if v.name in self._sources(plan, view)]
        functions = self.functions()
        found = (
            audit_view(self.store, self.layout, plan, v.name, self.project, functions)
            for v in wanted
        )
        return [_counted(replace(audit, view=shown_name(audit.view))) for audit in found]

    def _sources(self, plan: Plan, view: str) -> set[str]:
        found = plan.view(view)
        if found is None or found.kept:
            return {view}
        return {name for read in found.reads for name in self._sources(plan, read)}

    # Status

    def status(self) -> ProjectStatus:
        raise NotImplementedError

    def functions(self) -> tuple[FunctionDefinition, ...]:
        """The functions that the project defines."""
        return functions_of(self.project)

    def runtime_info(self) -> RuntimeInfo:
        """What only a running process knows; empty if the project is stopped."""
        return RuntimeInfo()

    def status_of(
        self,
        state: str,
        reason: str,
        plan: Plan | None,
        problems: Sequence[Problem] = (),
        watching: Sequence[Problem] = (),
    ) -> ProjectStatus:
        """The status without health; `watching` are the problems of watches."""
        return ProjectStatus(
            self.project.settings.name,
            state,
            reason,
            None,
            None,
            self.stream_statuses(plan, problems) if plan else [],
            self.view_statuses(plan) if plan else [],
            self.sink_statuses(plan) if plan else [],
            self.table_statuses(plan) if plan else [],
            self.rule_service.rules(),
            self.watch_service.numbers([problem.message for problem in watching]),
        )

    def stream_statuses(self, plan: Plan, problems: Sequence[Problem]) -> list[StreamStatus]:
        messages = {stream: p.message for p in reversed(problems) for stream in _streams_of(p)}
        return [self._stream_status(stream, messages.get(stream.name)) for stream in plan.streams]

    def _stream_status(self, stream: StreamPlan, problem: str | None) -> StreamStatus:
        version = self.master(stream).newest()
        archived, end = version.position, self.log_reader(stream).end()
        state = self.store.stream(stream.name)
        late, last_ms, shed = self._epoch_numbers(stream.name)
        definition = self.project.streams.get(stream.name)
        now_us = self.store.clock()
        time, mark_us = state.event_times(now_us)[0], state.reached.watermark_us
        return StreamStatus(
            stream.name,
            definition.source if definition else "http",
            list(end.offsets),
            list(state.position.offsets),
            list(archived.offsets),
            list(state.boundary.offsets),
            state.generation,
            end - state.position,
            late,
            iso(mark_us) if mark_us is not None else None,
            Balance(**balance(version, end)),
            last_ms,
            problem or self._abandoned_patterns(stream.name),
            (now_us - mark_us) // 1000 if mark_us is not None else None,
            time.held_by,
            [IdlePartition(partition, iso(since)) for partition, since in time.idle],
            shed,
            (now_us - state.committed_at) // 1000 if state.committed_at else None,
            self._trigger_us(definition) // 1000,
        )

    def _abandoned_patterns(self, stream: str) -> str | None:
        """Which keys of patterns are not searched any more."""
        live = [v.plan for v in self.store.versions(stream) if v.live]
        with self.store.read() as db:
            texts = [abandoned_text(db, plan) for plan in live]
        return "; ".join(filter(None, texts)) or None

    def _trigger_us(self, definition: StreamDefinition | None) -> int:
        speed = self.project.settings.speed
        return with_pace(speed, definition.pace).trigger_us if definition else speed.trigger_us

    def _epoch_numbers(self, stream: str) -> tuple[int, int | None, int]:
        with self.store.read() as db:
            newest = next(read_epochs(db, stream, limit=1), None)
            took_us = newest.committed_at - newest.started_at if newest else None
            took_ms = took_us // 1000 if took_us is not None else None
            return read_late(db, stream), took_ms, count_shed_events(db, stream)

    def view_statuses(self, plan: Plan) -> list[ViewStatus]:
        found = []
        for view in plan.shown_views:
            versions = self.store.versions(view.stream) if view.kept else []
            mine = [version for version in versions if version.name == view.name]
            live = next((version.plan for version in mine if version.live), None)
            whole = live is not None and all(version.live for version in mine)
            built = VersionStatus.LIVE if whole else VersionStatus.BUILDING
            state = built if view.kept else view.kind
            generation = self.store.stream(view.stream).generation if view.stream else 0
            rows, differences = self._view_numbers(live, view.stream)
            found.append(
                ViewStatus(view.name, view.kind, state, view.stream, rows, generation, differences)
            )
        return found

    def table_statuses(self, plan: Plan) -> list[TableStatus]:
        found = self.store.tables()
        return [
            TableStatus(table.name, found[table.name][0], iso(found[table.name][1]))
            for table in plan.shown_tables
            if table.name in found
        ]

    def _view_numbers(self, plan: ViewPlan | None, stream: str) -> tuple[int, int | None]:
        if plan is None:
            return 0, None
        with self.store.read() as db:
            rows, found = count_keys(db, plan.stored_name), newest_audit(db, stream, plan.name)
        compared = found is not None and found[0].changed is not None
        return rows, found[0].differences if found and compared else None

    def sink_statuses(self, plan: Plan) -> list[SinkStatus]:
        found = []
        for sink in plan.sinks:
            with self.store.read() as db:
                numbers = count_panes(db, sink.name)
            view, into = sink.subscription.view, sink.destination.name
            found.append(SinkStatus(sink.name, view, into, sink.guarantee.value, *numbers))
        return found

    # Parts

    def deployed(self) -> Plan:
        return required_plan(self.store.deployed())

    def stream_plan(self, name: str) -> StreamPlan:
        plan = self.deployed()
        found = next((s for s in plan.streams if s.name.lower() == name.lower()), None)
        if found is None:
            raise NotFound(
                f"there is no stream '{name}'",
                hint=f"available streams: {', '.join(s.name for s in plan.streams)}.",
            )
        return found

    def master(self, stream: StreamPlan) -> MasterTable:
        """One for each plan of the stream, because a table caches the version that it has read."""
        if stream not in self._masters:
            path = self.layout.master(stream.name)
            self._masters[stream] = MasterTable(path, declared_schema(stream), stream.partitions)
        return self._masters[stream]

    def log_reader(self, stream: StreamPlan) -> LogReader:
        return open_reader(self.layout.log(stream.name))


def _counted(audit: AuditResult) -> AuditResult:
    if audit.changed is not None:
        meters.AUDITS.labels(meters.DIFFERED if audit.differences else meters.AGREED).inc()
    return audit


def stopped_status(service: ProjectService) -> ProjectStatus:
    """The status of a stopped project."""
    plan = service.store.deployed()
    return with_health(service, plan, service.status_of("stopped", STOPPED, plan))


def _streams_of(problem: Problem) -> tuple[str, ...]:
    """The streams of a problem: that of a source, or all of a flow."""
    return stream_names(problem.name) if problem.kind in ("source", "flow") else ()


def _flow_of(name: str) -> str:
    """The flow of a key of `as_of`, which is `flow` or `view (flow)`.

    >>> _flow_of("orders+payments"), _flow_of("visitors (clicks)")
    ('orders+payments', 'clicks')
    """
    return name.rpartition("(")[2].removesuffix(")")
