"""A running project: ingest, log, archive, speed, batch and serving in one process.

Ingest starts first, so that producers can send while Spark starts. It stops in the opposite order.
What a stop leaves unfinished is done after the next start, from the log and the store.
tests/run/test_instance.py checks the order of the start, tests/run/test_runs.py runs all of it;
tests/run/test_kills.py kills it at each failpoint.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import Any

from msgspec.structs import replace as replace_fields

from headrace.access.access import Access
from headrace.access.caller import OWNER, Caller
from headrace.access.run import ADMIN, begin_job, begin_run, end_run, first_token
from headrace.api.limits import policy_of
from headrace.api.resources.status import ProjectStatus
from headrace.api.resources.view_detail import RebuildProgress
from headrace.api.server import HttpServer
from headrace.api.service import RebuildResult, Sender
from headrace.api.tls import unencrypted, with_paths
from headrace.compile.plan import Plan, WatchPlan
from headrace.core.errors import HeadraceError, LimitReached, NotFound, NotReady, Unavailable
from headrace.core.paths import hide_paths
from headrace.core.position import Position, PositionRange
from headrace.core.problems import Problem, ProblemKey, Problems, deduplicated, reason_of
from headrace.core.report import Report
from headrace.core.time import SECOND, duration_text, iso, now_us
from headrace.core.user import os_user
from headrace.core.watchdog import Watchdog
from headrace.core.worker import Worker, problems_of
from headrace.define.definitions import WatchDefinition
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.destination.protocol import DestinationContext
from headrace.ingest.connector import SOURCES, Connector
from headrace.ingest.intake import Receipt
from headrace.run.added_definitions import with_rules, with_watches
from headrace.run.archive_drafts import ArchiveDrafts
from headrace.run.compiling import check_without_spark, compile_recorded
from headrace.run.deployment import Deployment, RunContext
from headrace.run.health import FLOWING, HealthMonitor, disk_problems, with_health, with_problems
from headrace.run.health import problems_of as problems_of_flow
from headrace.run.lineage_publisher import publisher_of
from headrace.run.lock import RunLock
from headrace.run.metrics import exposition
from headrace.run.observatory.live import LiveObservatory
from headrace.run.observatory.observed_project import RuntimeInfo
from headrace.run.pipeline import Pipeline
from headrace.run.pipelines import new_shapes, rebuild_result
from headrace.run.project_service import ProjectService
from headrace.run.queue_delivery import routes_of
from headrace.run.rule_service import AddedRules
from headrace.run.state_check import check_state
from headrace.run.stream_intakes import StreamIntakes
from headrace.run.stream_source import StreamSourceFactory
from headrace.run.watch_constants import begin_watches
from headrace.serving.hub import Hub
from headrace.serving.opening import open_store
from headrace.serving.subscriber import OpenSubscription
from headrace.serving.watches import deploy_files
from headrace.spark.jobs import BatchJobs

START_POLL_S = 0.05
REBUILD_SECONDS_MAX = 59 * 60  # less than the timeout of clients, so that they get the answer
CONNECTED_S = 10.0  # a connector that has run for so long without an error is connected
_SPARK, _COMPILE = ProblemKey("part", "spark", "start"), ProblemKey("part", "compile", "compile")


class Instance(ProjectService):
    """`Service` of a project that runs in this process."""

    def __init__(
        self, project: Project, report: Report, turn: int = 0, server_key: bytes | None = None
    ) -> None:
        layout = Layout.of(project)
        hide_paths(project.folder, project.state)
        self.lock = RunLock(layout, turn)
        self.lock.acquire()
        super().__init__(
            project, open_store(layout.store, group_us=project.settings.speed.group_us)
        )
        self.report = report
        self.started_at = now_us()
        self.state, self.reason = "starting", "the log is being opened"
        self._known_status = ProjectStatus(
            project.settings.name, self.state, self.reason, iso(self.started_at), None, [], []
        )
        self.watchdog = Watchdog()
        opens = StreamSourceFactory(project, self.query_service.pool.run)
        self.hub = Hub(self.store.db, project.settings.subscribe, opens, report=report)
        self.stream_intakes = StreamIntakes(project, self.lag_of, self.hub.broadcast.notify)
        self.spark: Any = None
        self._starting: Future[Any] = Future()  # of Spark
        self.drafts = ArchiveDrafts(project)
        self.deployment: Deployment | None = None
        self.observatory = LiveObservatory(self, report)
        self.cache = self.observatory.cache
        self.access = Access(
            layout.access,
            project.settings.name,
            policy=policy_of(project.settings.access),
            server_key=server_key,
        )
        self.served = server_key is not None
        self.server: HttpServer | None = None
        self.lineage = publisher_of(project, report)
        self._stop = threading.Event()
        self.health_monitor = HealthMonitor(
            self.health, self._reported_problems, self._stop, report
        )
        self._changing = threading.Lock()
        self._failure: HeadraceError | None = None  # only a restart can fix it
        self.sources: list[Connector] = []
        self._connectors: list[Worker] = []
        self._source_problems = Problems("source", report)

    # Start and stop

    def open(self) -> None:
        """Open the logs, so that events can come in."""
        check_without_spark(self.project)
        check_state(self.layout, self.project.streams)
        self.store.take_over()
        self.query_service.reader.model.follow()
        self.stream_intakes.open()

    def start_sources(self) -> None:
        """Start the connectors of the streams; they do not require Spark."""
        for name in self.project.streams:
            if connector := self.connector(name):
                worker = Worker(
                    f"ingest {name}",
                    partial(connector.run, self._stop),
                    self._stop,
                    self.report,
                    key=ProblemKey("source", name, "connector"),
                    settled_s=CONNECTED_S,
                )
                self.sources.append(connector)
                self._connectors.append(worker)
                worker.start()

    def connector(self, stream: str) -> Connector | None:
        """The connector of a stream; None if it receives events over HTTP only."""
        definition, intake = self.project.streams[stream], self.stream_intakes.intakes[stream]
        connect, folder = SOURCES[definition.source].connect, self.project.folder
        return connect(definition, intake, folder, self._source_problems) if connect else None

    def serve(self, port: int | None) -> str:
        """Start the HTTP server; returns its URL."""
        settings = self.project.settings
        http = with_paths(settings.http, self.project.folder)
        http = http if port is None else replace(http, port=port)
        self.server = HttpServer(self, http, self.access, settings.access)
        self.server.start()
        begin, url = begin_job if self.served else begin_run, self.server.url
        self.lock.announce(url, token := begin(self.access))
        self.observatory.start()
        self.health_monitor.worker.start()
        if self.served:
            # The report goes into a log that others can read, so it has no login link.
            self.report("serving", {"url": url})
            return url
        self.report("serving", {"url": url, "login": f"{url}/#login={self.access.code(token)}"})
        if first := first_token(self.access):
            self.report("first_token", {"user": ADMIN, "token": first})
        if unencrypted(http):
            self.report("exposed", {"host": http.host})
        return url

    def start_engine(self, stop: threading.Event) -> bool:
        """Start Spark, deploy the project, and build the first generation of every view; False if
        `stop` was set before all were built.
        """
        self.reason = "Spark is starting, and the project is being compiled"
        with ThreadPoolExecutor(1, "start of Spark") as pool:
            self._starting = pool.submit(copy_context().run, self._start_spark)
            self.drafts.start(self._starting)
            plan = self._compile(self.project)
            self._starting.result()
        self.reason = "views are being built"
        return self._deploy(plan, os_user(), stop)

    def _start_spark(self) -> Any:
        from headrace.spark.session import start_session

        settings = self.project.settings
        with self.watchdog.step(_SPARK, "the start of Spark", settings.watchdog.compile_us):
            self.spark = start_session(
                settings.spark, app_name=f"headrace-{settings.name}", work=self.layout.work("run")
            )
        self.report("engine", {"master": settings.spark.master})
        return self.spark

    def _compile(self, project: Project) -> Plan:
        """The plan of a project. Raises if it is not valid or a destination does not work with the
        settings; nothing is changed.
        """
        limit_us = project.settings.watchdog.compile_us
        with self.watchdog.step(_COMPILE, "the compilation of the project", limit_us):
            plan = compile_recorded(self._starting.result, project)
        context = DestinationContext(project, self.submit)
        for route in routes_of(plan):
            route.destination.connect(context)
        return plan

    def _deploy(self, plan: Plan, who: str, stop: threading.Event) -> bool:
        """Store a plan, make its deployment and build its views; no part is started. Rules are
        stored only if all views were built.
        """
        store_rules = self._store_plan(plan, who, new_shapes(plan))
        self.deployment = Deployment.of(self._context(), self.project, plan)
        built = self.build(stop, lambda pipeline: pipeline.needs_catch_up())
        if built:
            store_rules()
            self.deployment.rule_evaluator.release()
        return built

    def build(
        self, stop: threading.Event, only: Callable[[Pipeline], bool] = lambda pipeline: True
    ) -> bool:
        """Catch up the views of all pipelines, or of some, to the end of the log; False if `stop`
        was set before all were done.
        """
        return self.current_deployment().build_until(stop, BatchJobs(self.spark), only)

    def _store_plan(self, plan: Plan, who: str, shapes: set[str]) -> Callable[[], None]:
        """Make a plan the deployed one, and begin watches of these shapes. No epoch may run. Call
        what it returns when the views have been built: it stores the rules.
        """
        self.store.deploy(plan)
        since = {stream.name: self.store.stream(stream.name).position for stream in plan.streams}
        in_files = [watch for watch in plan.watches if watch.name in self.files.watches]
        with self.store.write() as db:
            deploy_files(db, in_files, who, self.store.clock())
        begin_watches(self.store, plan, shapes)
        # Only then, so that a rule whose first build kills the process is not stored for the next
        # start. The rule still sees all events from `since` on.
        return partial(self.store.deploy_rules, plan, self.added, who, since)

    def _context(self) -> RunContext:
        return RunContext(
            self.spark,
            self.store,
            self.stream_intakes.topics,
            self.hub,
            self.lineage,
            self.submit,
            self.report,
            self._close_watches,
            self.watchdog,
            self.drafts,
        )

    def current_deployment(self) -> Deployment:
        """The deployment of the deployed plan; NotReady before there is one."""
        if self.deployment is None:
            raise NotReady("the project is still starting", hint="try again in a moment.")
        return self.deployment

    def redeploy(
        self, added: AddedRules, who: str, watches: tuple[WatchDefinition, ...] = ()
    ) -> None:
        """Deploy other rules and shapes of watches without stopping ingest, epochs or queries. If
        they do not compile, nothing changes; if something fails later, the previous plan is
        deployed again.
        """
        with self._changing:
            running = self._running()
            rules = with_rules(self.files, added.values())
            project = with_watches(rules, self.store, watches)
            with self.engine_checked():
                plan = self._compile(project)
            old = self.project, self.added
            try:
                with self.engine_checked():
                    self.project, self.added = project, frozenset(added)
                    self.deployment = self._redeploy(running, plan, who)
            except Exception:
                self.project, self.added = old
                self.check_engine()  # without Spark, a rollback is not possible
                self._roll_back(running, who)
                raise

    def _roll_back(self, running: Deployment, who: str) -> None:
        """Deploy the previous plan again. If that fails too, rules, watches and flows that were
        stopped stay stopped; the supervisor restarts this process, which deploys all of them.
        """
        try:
            self.deployment = self._redeploy(running, running.plan, who)
        except Exception as error:
            self._failure = Unavailable(
                "the project could not be changed, and the rollback to its previous plan failed",
                detail=reason_of(error),
                hint="restart it; the log and the store are intact.",
            )
            self.state, self.reason = "stopping", self._failure.message
            raise self._failure from error

    def _redeploy(self, running: Deployment, plan: Plan, who: str) -> Deployment:
        change = partial(self._store_plan, plan, who)
        return running.redeploy(self._context(), self.project, plan, change, self._stop)

    def _running(self) -> Deployment:
        """The deployment, if it may be changed now; NotReady during start and stop."""
        if self.state == "stopping":
            raise NotReady("the project is shutting down", hint="start it again.")
        if self.state != "running":
            raise NotReady("the project is still starting", hint="try again in a moment.")
        return self.current_deployment()

    def add_watches(self, plans: Sequence[WatchPlan], who: str) -> None:
        """Add watches of deployed shapes between two epochs."""
        context = DestinationContext(self.project, self.submit)
        for destination in {one for plan in plans for one in plan.destinations}:
            destination.connect(context)
        with self._changing:
            write = partial(super().add_watches, plans, who)
            self._running().reload_constants({plan.shape for plan in plans}, write)

    def _close_watches(self, shapes: set[str]) -> None:
        """Remove the constants of watches that have ended."""
        # Does not block: a change waits for the thread that calls this.
        if self._changing.acquire(blocking=False):
            try:
                self.current_deployment().reload_constants(shapes)
            finally:
                self._changing.release()

    def become_writer(self) -> None:
        """A running project is always the writer."""

    def check_engine(self) -> None:
        """Raise if Spark is dead or a rollback has failed, so that the supervisor restarts this
        process.
        """
        from headrace.spark.session import check_alive

        if self._failure is not None:
            raise self._failure
        check_alive(self.watchdog.suspects)

    @contextmanager
    def engine_checked(self) -> Iterator[None]:
        """Report a failure of the block as the death of Spark, if Spark is dead."""
        try:
            yield
        except HeadraceError:
            raise
        except Exception as error:
            from headrace.spark.session import DEATH_SECONDS_MAX, check_alive, connection_lost

            check_alive(
                self.watchdog.suspects, DEATH_SECONDS_MAX if connection_lost(error) else 0.0
            )
            raise

    def start_flow(self, stop: threading.Event) -> bool:
        """Start all parts, and wait until the speed of every flow is warm; False if `stop` was set
        before.
        """
        deployment = self.current_deployment()
        deployment.start()
        while waiting := deployment.starting:
            if stop.wait(START_POLL_S):
                return False
            self.reason = (
                f"the speed layer is starting: {waiting} of {len(deployment.pipelines)} streams "
                "are not ready"
            )
            self.check_engine()
        self.state, self.reason = "running", ""
        return True

    def stop_sources(self) -> None:
        """Stop the connectors."""
        self._stop.set()
        for worker in self._connectors:
            worker.join(timeout=10)

    def begin_stop(self) -> None:
        """Accept no more changes of rules and watches, and stop archive steps and builds: also
        those for which a change in progress waits, which is then rolled back.
        """
        self.state, self.reason = "stopping", "the project is shutting down"
        self._stop.set()
        if self.deployment is not None:
            self.deployment.schedule.stop()
        with self._changing:
            pass  # a change in progress has ended

    def close(self) -> None:
        """Stop all parts, in the opposite order of the start."""
        self.begin_stop()
        self.stop_sources()
        self.health_monitor.worker.join()
        # Before the HTTP server, which waits for running queries.
        self.query_service.close()
        self.hub.broadcast.stop()
        self.observatory.stop()
        if self.server is not None:
            self.server.stop()
        if self.deployment is not None:
            self.deployment.stop()
        self.lineage.stop()
        if self.spark is not None:
            from headrace.spark.session import stop_session

            stop_session(self.spark)
        self.stream_intakes.close()
        self.store.close()
        end_run(self.access)
        self.access.close()
        self.lock.release()

    # Service

    def submit(self, stream: str, records: Sequence[bytes]) -> Future[Receipt]:
        return self.stream_intakes.intake(stream).submit(records)

    def sender(self, stream: str) -> Sender:
        return self.stream_intakes.intake(stream).submit_all

    def import_part(self, stream: str, part: str) -> Receipt:
        return self.stream_intakes.import_part(stream, part, running=True)

    def log_end(self, stream: str) -> Position:
        return self.stream_intakes.topics[stream].end()  # in memory

    def status(self) -> ProjectStatus:
        """While the store cannot be read, the last known status, with that as a problem."""
        try:
            self._known_status = self._read_status()
        except Unavailable as error:
            message = f"the status has its last known numbers: {error.message}"
            unreadable = Problem("part", "status", "store", message)
            known = replace_fields(self._known_status, state=self.state, reason=self.reason)
            return with_problems(known, [unreadable, *self.problems()])
        return self._known_status

    def _read_status(self) -> ProjectStatus:
        plan, url = self.store.deployed(), self.server.url if self.server else None
        watching = self.deployment.problems_of_watches() if self.deployment else []
        found = self.status_of(self.state, self.reason, plan, self.problems(), watching)
        found = replace_fields(found, started_at=iso(self.started_at), url=url)
        return with_health(self, plan, found)

    def problems(self) -> list[Problem]:
        return deduplicated(self._reported_problems(), self._unreported_problems())

    def _reported_problems(self) -> list[Problem]:
        """Problems that workers and parts have reported when they occurred."""
        shared = [self.health_monitor.worker, self.lineage.worker, self.observatory.sampler.worker]
        publishers = [*self.observatory.live_topics.broadcast.workers, *self.hub.broadcast.workers]
        workers = [*self._connectors, *shared, *publishers]
        deployed = self.deployment.problems() if self.deployment else []
        return deduplicated(problems_of(workers), self._source_problems, deployed)

    def _unreported_problems(self) -> list[Problem]:
        """Problems that are detected by polling only: steps that hang, and a full disk."""
        return [*self.watchdog.problems, *disk_problems(self.layout.state, self.project)]

    def health(self) -> list[Problem]:
        """The problems of the flow of events; views are left out, because counting is slow."""
        plan, problems = self.store.deployed(), self.problems()
        streams = self.stream_statuses(plan, problems) if plan else []
        found = ProjectStatus(
            self.project.settings.name, self.state, self.reason, None, None, streams, []
        )
        return problems_of_flow(self, plan, found, FLOWING)

    def runtime_info(self) -> RuntimeInfo:
        started = self.spark is not None
        return RuntimeInfo(
            running=True,
            started_at_us=self.started_at,
            spark_version=self.spark.version if started else None,
            jvm_pid=_jvm_pid(self.spark) if started else None,
            problems=self.problems(),
            phases=self._phases,
            rebuild=self._rebuild_progress,
        )

    def _phases(self, flow: str) -> dict[PositionRange, dict[str, int]]:
        return self.deployment.phases(flow) if self.deployment else {}

    def _rebuild_progress(self, flow: str, view: str) -> RebuildProgress | None:
        return self.deployment.rebuild_progress(flow, view) if self.deployment else None

    def ready(self) -> tuple[bool, str]:
        return self.state == "running", self.reason

    def rebuild(self, view: str) -> RebuildResult:
        plan = self.deployed()
        found = plan.view(view)
        if found is None or not found.stream:
            raise NotFound(f"there is no materialized view '{view}'")
        promoted = self.current_deployment().schedule.rebuild(found.stream, found.name)
        if not wait([promoted], REBUILD_SECONDS_MAX).done:
            limit = duration_text(REBUILD_SECONDS_MAX * SECOND)
            raise LimitReached(
                f"the rebuild of view '{found.name}' has not finished within {limit}; it continues",
                hint=f"GET /v1/views/{found.name}/about shows its progress, as does the console.",
            )
        return rebuild_result(found.name, promoted.result())

    def subscribe(
        self,
        text: str,
        after: str | None = None,
        news: Callable[[], None] = lambda: None,
        caller: Caller = OWNER,
    ) -> OpenSubscription:
        return self.hub.subscribe(text, after, news, caller.user)

    def live(
        self, topics: Sequence[str], news: Callable[[], None] = lambda: None
    ) -> OpenSubscription:
        return self.observatory.live(topics, news)

    def metrics(self) -> bytes:
        tally, open = self.rule_service.tally(), self.hub.broadcast.subscribers_count
        return exposition(self.status(), tally, self.layout.state, open)

    # Numbers for the terminal

    def lag_events(self) -> int:
        return self.deployment.lag_events() if self.deployment else 0

    def lag_of(self, stream: str) -> int:
        return self.deployment.lag_of(stream) if self.deployment else 0

    def events_in(self) -> int:
        return sum(intake.counters.accepted for intake in self.stream_intakes.intakes.values())


def _jvm_pid(spark: Any) -> int | None:
    """The process id of Spark's JVM; None if another process has started it."""
    process = spark.sparkContext._gateway.proc
    return process.pid if process is not None else None
