"""A running project: ingest, log, archive, speed, batch and serving in one process.

Ingest comes first, so that producers can send while Spark starts. Stopping goes the other way
round, and whatever it leaves undone is found again at the next start: the log and the store are
the truth. tests/run/test_instance.py checks the order of the start, tests/run/test_runs.py runs
it whole; tests/run/test_kills.py kills it at each failpoint.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from msgspec.structs import replace as replace_fields

from headrace.access.access import Access
from headrace.access.run import ADMIN, begin_job, begin_run, end_run, first_token
from headrace.api.limits import policy_of
from headrace.api.resources.view_detail import RebuildProgress
from headrace.api.server import HttpServer
from headrace.api.service import ProjectStatus, RebuildResult
from headrace.api.tls import unencrypted, with_paths
from headrace.compile.plan import Plan, WatchPlan
from headrace.core.errors import HeadraceError, NotFound, NotReady, Unavailable
from headrace.core.paths import hide_paths
from headrace.core.position import Position, PositionRange
from headrace.core.problems import Problem, ProblemKey, Problems, deduplicated, reason_of
from headrace.core.report import Report
from headrace.core.time import iso, now_us
from headrace.core.user import os_user
from headrace.core.watchdog import Watchdog
from headrace.core.worker import Worker, problems_of
from headrace.define.definitions import WatchDefinition
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.destination.protocol import Surroundings
from headrace.ingest.connector import Connector, connectors
from headrace.ingest.intake import Receipt
from headrace.run.compiling import check_without_spark, compile_with
from headrace.run.constants import begin_watches
from headrace.run.delivery import routes_of
from headrace.run.deployment import Deployment, Ground
from headrace.run.following import Following
from headrace.run.health import FLOWING, disk_problems, with_health
from headrace.run.health import problems_of as problems_of_flow
from headrace.run.health_watch import HealthWatch
from headrace.run.inlets import Inlets
from headrace.run.lock import RunLock
from headrace.run.metrics import exposition
from headrace.run.observatory.live import LiveObservatory
from headrace.run.observatory.subject import Signs
from headrace.run.once import begun_in, rebuilt
from headrace.run.outlet import lineage_of
from headrace.run.parts import check_parts
from headrace.run.pipeline import Pipeline
from headrace.run.project_service import ProjectService
from headrace.run.rulebook import Kept
from headrace.run.rules import with_rules
from headrace.run.watches import with_watches
from headrace.serving.hearer import Hearing
from headrace.serving.hub import Hub
from headrace.serving.sqlite_store import SqliteStore
from headrace.serving.watches import add, deploy_files, remove
from headrace.spark.jobs import BatchJobs

REBUILD_SECONDS_MAX, START_LOOK_S = 3_600, 0.05
_COMPILE = ProblemKey("part", "compile", "compile")


class Instance(ProjectService):
    """`Service` for a project that runs in this process."""

    def __init__(
        self,
        project: Project,
        report: Report,
        turn: int = 0,
        server_key: bytes | None = None,
    ) -> None:
        layout = Layout.of(project)
        hide_paths(project.folder, project.state)
        self.lock = RunLock(layout, turn)
        self.lock.take()
        super().__init__(
            project, SqliteStore(layout.store, group_us=project.settings.speed.group_us)
        )
        self.report = report
        self.started_at = now_us()
        self.state, self.reason = "starting", "the log is being opened"
        self.watchdog = Watchdog()
        opens = Following(project, self.questions.pool.run)
        self.hub = Hub(self.store.db, project.settings.subscribe, opens, report=report)
        self.inlets = Inlets(project, self.lag_of, self.hub.broadcast.tell)
        self.spark: Any = None
        self.deployment: Deployment | None = None
        self.seen = LiveObservatory(self, report)
        self.memory = self.seen.memory
        self.access = Access(
            layout.access,
            project.settings.name,
            policy=policy_of(project.settings.access),
            server_key=server_key,
        )
        self.served = server_key is not None
        self.server: HttpServer | None = None
        self.lineage = lineage_of(project, report)
        self._stop = threading.Event()
        self.health_watch = HealthWatch(self.health, self._problems_said, self._stop, report)
        self._changing = threading.Lock()
        self._failure: HeadraceError | None = None  # that only another process can mend
        self.sources: list[Connector] = []
        self._connectors: list[Worker] = []
        self._source_problems = Problems("source", report)

    # Start and stop

    def open(self) -> None:
        """Open the logs, so that events can come in."""
        check_without_spark(self.project)
        check_parts(self.layout, self.project.streams)
        self.store.take_over()
        self.questions.reader.model.follow()
        self.inlets.open()

    def start_sources(self) -> None:
        """Let events come in from the sources of the streams; Spark need not run for that."""
        for name in self.project.streams:
            if connector := self.connector(name):
                run, key = (
                    partial(connector.run, self._stop),
                    ProblemKey("source", name, "connector"),
                )
                worker = Worker(f"ingest {name}", run, self._stop, self.report, key=key)
                self.sources.append(connector)
                self._connectors.append(worker)
                worker.start()

    def connector(self, stream: str) -> Connector | None:
        """What brings events into a stream beside HTTP, if it has a source."""
        definition, intake = self.project.streams[stream], self.inlets.intakes[stream]
        make, state = connectors.get(definition.source), self.layout.ingest
        problems, folder = self._source_problems, self.project.folder
        return make(definition, intake, folder, state, problems) if make else None

    def serve(self, port: int | None) -> str:
        """Answer HTTP; the address."""
        settings = self.project.settings
        http = with_paths(settings.http, self.project.folder)
        http = http if port is None else replace(http, port=port)
        self.server = HttpServer(self, http, self.access, settings.access)
        self.server.start()
        begin, url = begin_job if self.served else begin_run, self.server.url
        self.lock.announce(url, token := begin(self.access))
        self.seen.start()
        self.health_watch.worker.start()
        if self.served:
            # What is reported goes into a log that others read, so it opens nothing.
            self.report("serving", {"url": url})
            return url
        self.report("serving", {"url": url, "login": f"{url}/#login={self.access.code(token)}"})
        if first := first_token(self.access):
            self.report("first_token", {"user": ADMIN, "token": first})
        if unencrypted(http):
            self.report("exposed", {"host": http.host})
        return url

    def start_engine(self, stop: threading.Event) -> bool:
        """Start Spark, deploy the project, and bring every view to its first generation; whether
        that was done before the run was told to stop.
        """
        from headrace.spark.session import start_session

        self.reason = "Spark is starting"
        self.spark = start_session(
            self.project.settings.spark,
            app_name=f"headrace-{self.project.settings.name}",
            work=self.layout.work("run"),
        )
        self.report("engine", {"master": self.project.settings.spark.master})
        self.reason = "the project is being compiled"
        plan = self._planned(self.project)
        self.reason = "views are being built"
        return self._deploy(plan, os_user(), stop)

    def _planned(self, project: Project) -> Plan:
        """The plan of a project, whose destinations can all work; else it is refused, and nothing
        has changed.
        """
        limit_us = project.settings.watchdog.compile_us
        with self.watchdog.step(_COMPILE, "the compilation of the project", limit_us):
            plan = compile_with(self.spark, project)
        surroundings = Surroundings(project, self.submit)
        for route in routes_of(plan):
            route.destination.connect(surroundings)
        return plan

    def _deploy(self, plan: Plan, who: str, stop: threading.Event) -> bool:
        """Make a plan the first deployed one, with all that runs it, and bring its views to their
        first generation; nothing is started. Rules are noted only if all were built.
        """
        note_rules = self._store_plan(plan, who, begun_in(plan))
        self.deployment = Deployment.of(self._ground(), self.project, plan)
        built = self.build(stop, lambda pipeline: pipeline.needs_catch_up())
        if built:
            note_rules()
            self.deployment.alerts.release()
        return built

    def build(
        self, stop: threading.Event, only: Callable[[Pipeline], bool] = lambda pipeline: True
    ) -> bool:
        """Bring the views of every stream, or of some, to all that is in the log now; whether that
        was done before the run was told to stop.
        """
        with BatchJobs(self.spark).cancelled_by(stop):
            return self.working().build(only, stop.is_set)
        return False

    def _store_plan(self, plan: Plan, who: str, shapes: set[str]) -> Callable[[], None]:
        """Make a plan the deployed one; watches of these shapes begin. No epoch may run. What is
        returned notes the rules, when the views have been built.
        """
        self.store.deploy(plan)
        since = {stream.name: self.store.stream(stream.name).position for stream in plan.streams}
        said = [watch for watch in plan.watches if watch.name in self.files.watches]
        with self.store.write() as db:
            deploy_files(db, said, who, self.store.clock())
        begin_watches(self.store, plan, shapes)
        # Only then, so that a rule whose first build ends the process is not there at the next
        # start. What came in since it was said is new to it all the same.
        return partial(self.store.deploy_rules, plan, self.kept, who, since)

    def _ground(self) -> Ground:
        return Ground(
            self.spark,
            self.store,
            self.inlets.topics,
            self.hub,
            self.lineage,
            self.submit,
            self.report,
            self._close_watches,
            self.watchdog,
        )

    def working(self) -> Deployment:
        """What runs the deployed plan; NotReady before there is one."""
        if self.deployment is None:
            raise NotReady("the project is still starting", hint="try again in a moment.")
        return self.deployment

    def redeploy(self, kept: Kept, who: str, watches: tuple[WatchDefinition, ...] = ()) -> None:
        """Deploy other rules, and shapes of watches, while events come in, epochs are committed and
        questions are answered. If they cannot be compiled, nothing changes; if something fails
        after that, what ran before runs again.
        """
        with self._changing:
            running = self._running()
            rules = with_rules(self.files, kept.values())
            project = with_watches(rules, self.store, watches)
            with self.engine_checked():
                plan = self._planned(project)
            old = self.project, self.kept
            try:
                with self.engine_checked():
                    self.project, self.kept = project, frozenset(kept)
                    self.deployment = self._replaced(running, plan, who)
            except Exception:
                self.project, self.kept = old
                self.check_engine()  # without it there is nothing to go back to
                self._go_back(running, who)
                raise

    def _go_back(self, running: Deployment, who: str) -> None:
        """Run again what ran before. If that fails too, rules, watches and flows that were stopped
        stay so; whoever supervises this process starts another, which deploys all of them.
        """
        try:
            self.deployment = self._replaced(running, running.plan, who)
        except Exception as error:
            self._failure = Unavailable(
                "the project could not be changed, nor brought back to what ran before",
                detail=reason_of(error),
                hint="start it again; the log and the store are whole.",
            )
            self.state, self.reason = "stopping", self._failure.message
            raise self._failure from error

    def _replaced(self, running: Deployment, plan: Plan, who: str) -> Deployment:
        change = partial(self._store_plan, plan, who)
        return running.replaced(self._ground(), self.project, plan, change)

    def _running(self) -> Deployment:
        """What may be changed now; NotReady while it is started or stopped."""
        if self.state == "stopping":
            raise NotReady("the project is stopping", hint="start it again.")
        if self.state != "running":
            raise NotReady("the project is still starting", hint="try again in a moment.")
        return self.working()

    def admit(self, plans: Sequence[WatchPlan], who: str) -> None:
        """Take in watches of deployed shapes, between two epochs."""
        surroundings = Surroundings(self.project, self.submit)
        for destination in {one for plan in plans for one in plan.destinations}:
            destination.connect(surroundings)
        with self._changing:
            self._running().renew({plan.shape for plan in plans}, lambda: self._add(plans, who))

    def _add(self, plans: Sequence[WatchPlan], who: str) -> None:
        with self.store.write() as db:
            for plan in plans:
                add(db, plan, True, who, self.store.clock(), None)

    def dismiss(self, name: str, who: str) -> None:
        """Take a watch away; its constants go at the next closing."""
        with self.store.write() as db:
            remove(db, name, who, self.store.clock())

    def _close_watches(self, shapes: set[str]) -> None:
        """Compare no more with the constants of watches that have ended."""
        # A change waits for the thread that asks for this, so it does not wait for the change.
        if self._changing.acquire(blocking=False):
            try:
                self.working().renew(shapes)
            finally:
                self._changing.release()

    def writing(self) -> None:
        """A running project is the writer."""

    def check_engine(self) -> None:
        """Fail if Spark is gone, or what runs is not whole: whoever supervises this process starts
        another.
        """
        from headrace.spark.session import check_alive

        if self._failure is not None:
            raise self._failure
        check_alive(self.watchdog.suspects)

    @contextmanager
    def engine_checked(self) -> Iterator[None]:
        """What fails inside because Spark has died says so."""
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

    def start_flow(self, stop: threading.Event) -> None:
        """Start all that works by itself, and wait until the speed of every stream is warm."""
        deployment = self.working()
        deployment.start()
        while (waiting := deployment.starting) and not stop.wait(START_LOOK_S):
            self.reason = (
                f"speed is starting: {waiting} of {len(deployment.pipelines)} streams are left"
            )
            self.check_engine()
        self.state, self.reason = "running", ""

    def stop_sources(self) -> None:
        """No more events from connectors."""
        self._stop.set()
        for worker in self._connectors:
            worker.join(timeout=10)

    def begin_stop(self) -> None:
        """Change no rules and watches any more; a change that has begun is finished."""
        with self._changing:
            self.state, self.reason = "stopping", "the project is stopping"

    def close(self) -> None:
        """Stop everything, in the opposite order of the start."""
        self.begin_stop()
        self.stop_sources()
        self.health_watch.worker.join()
        # Before whoever waits for an answer is waited for.
        self.close_questions()
        self.hub.broadcast.stop()
        self.seen.stop()
        if self.server is not None:
            self.server.stop()
        if self.deployment is not None:
            self.deployment.stop()
        self.lineage.stop()
        if self.spark is not None:
            from headrace.spark.session import stop_session

            stop_session(self.spark)
        self.inlets.close()
        self.store.close()
        end_run(self.access)
        self.access.close()
        self.lock.release()

    # Service

    def submit(self, stream: str, records: Sequence[bytes]) -> Future[Receipt]:
        return self.inlets.intake(stream).submit(records)

    def log_end(self, stream: str) -> Position:
        return self.inlets.topics[stream].end()  # which reads no file

    def status(self) -> ProjectStatus:
        plan, url = self.store.deployed(), self.server.url if self.server else None
        watching = self.deployment.problems_of_watches() if self.deployment else []
        found = self.status_of(self.state, self.reason, plan, self.problems(), watching)
        found = replace_fields(found, started_at=iso(self.started_at), url=url)
        return with_health(self, plan, found)

    def problems(self) -> list[Problem]:
        return deduplicated(self._problems_said(), self._problems_seen())

    def _problems_said(self) -> list[Problem]:
        """Of workers and parts, which report them when they occur."""
        shared = [self.health_watch.worker, self.lineage.worker, self.seen.sampler.worker]
        told = [*self.seen.board.broadcast.workers, *self.hub.broadcast.workers]
        workers = [*self._connectors, *shared, *told]
        deployed = self.deployment.problems() if self.deployment else []
        return deduplicated(problems_of(workers), self._source_problems, deployed)

    def _problems_seen(self) -> list[Problem]:
        """What nobody reports when it happens: steps that hang, and a full disk."""
        return [*self.watchdog.problems, *disk_problems(self.layout.state, self.project)]

    def health(self) -> list[Problem]:
        """What hinders the flow of events; views are not looked at, because counting takes time."""
        plan, problems = self.store.deployed(), self.problems()
        streams = self.stream_statuses(plan, problems) if plan else []
        found = ProjectStatus(
            self.project.settings.name, self.state, self.reason, None, None, streams, []
        )
        return problems_of_flow(self, plan, found, FLOWING)

    def signs(self) -> Signs:
        started = self.spark is not None
        return Signs(
            running=True,
            started_at_us=self.started_at,
            spark_version=self.spark.version if started else None,
            jvm_pid=_jvm_pid(self.spark) if started else None,
            problems=self.problems(),
            phases=self._phases,
            rebuild=self._rebuild_of,
        )

    def _phases(self, flow: str) -> dict[PositionRange, dict[str, int]]:
        return self.deployment.phases(flow) if self.deployment else {}

    def _rebuild_of(self, flow: str, view: str) -> RebuildProgress | None:
        return self.deployment.rebuild_of(flow, view) if self.deployment else None

    def ready(self) -> tuple[bool, str]:
        return self.state == "running", self.reason

    def rebuild(self, view: str) -> RebuildResult:
        plan = self.deployed()
        found = plan.view(view)
        if found is None or not found.stream:
            raise NotFound(f"there is no view '{view}' that is kept")
        wish = self.working().schedule.rebuild(found.stream, found.name)
        return rebuilt(found.name, wish.result(REBUILD_SECONDS_MAX))

    def subscribe(
        self, text: str, after: str | None = None, news: Callable[[], None] = lambda: None
    ) -> Hearing:
        return self.hub.join(text, after, news)

    def live(self, topics: Sequence[str], news: Callable[[], None] = lambda: None) -> Hearing:
        return self.seen.live(topics, news)

    def metrics(self) -> bytes:
        tally, open = self.rule_service.tally(), self.hub.broadcast.subscribers
        return exposition(self.status(), tally, self.layout.state, open)

    # Numbers for the terminal

    def lag_events(self) -> int:
        return self.deployment.lag_events() if self.deployment else 0

    def lag_of(self, stream: str) -> int:
        return self.deployment.lag_of(stream) if self.deployment else 0

    def events_in(self) -> int:
        return sum(intake.counters.accepted for intake in self.inlets.intakes.values())


def _jvm_pid(spark: Any) -> int | None:
    """The process of Spark's JVM; None where another process has started it."""
    process = spark.sparkContext._gateway.proc
    return process.pid if process is not None else None
