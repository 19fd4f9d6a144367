"""A running project: ingest, log, archive, speed, batch and serving in one process.

Ingest comes first, so that producers can send while Spark starts. Stopping goes the other way
round, and whatever it leaves undone is found again at the next start: the log and the store are
the truth. tests/run/test_instance.py checks the order of the start, tests/run/test_runs.py runs
it whole; tests/run/test_kills.py kills it at each failpoint.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import msgspec
import structlog
from py4j.protocol import Py4JError

from headrace.access.access import Access
from headrace.access.run import ADMIN, begin_job, begin_run, end_run, first_token
from headrace.api.observed.about import Rebuild
from headrace.api.server import HttpServer
from headrace.api.service import Status
from headrace.api.tls import exposed, with_paths
from headrace.compile.plan import Plan, WatchPlan
from headrace.core.errors import HeadraceError, NotFound, NotReady
from headrace.core.report import Report
from headrace.core.time import iso, now_us
from headrace.core.user import os_user
from headrace.define.definitions import WatchDefinition
from headrace.define.project import Project
from headrace.ingest.connector import connectors
from headrace.ingest.intake import Receipt
from headrace.run.alerts import Alerts, action_of, actions_of
from headrace.run.compiling import check_without_spark, compile_with
from headrace.run.constants import begin_watches, write_constants
from headrace.run.following import Following
from headrace.run.inlets import Inlets
from headrace.run.layout import Layout
from headrace.run.lock import RunLock
from headrace.run.metrics import exposition
from headrace.run.observatory.live import LiveObservatory
from headrace.run.observatory.subject import Signs
from headrace.run.once import pipelines_of, rebuilt
from headrace.run.outlet import lineage_of
from headrace.run.pipeline import Pipeline
from headrace.run.project_service import ProjectService
from headrace.run.rebuilds import rebuild_of
from headrace.run.rulebook import Kept
from headrace.run.rules import with_rules
from headrace.run.schedule import Schedule
from headrace.run.sinks import Sinks
from headrace.run.tables import Tables
from headrace.run.watches import Watches, with_watches
from headrace.serving.hearer import Hearing
from headrace.serving.hub import Hub
from headrace.serving.retention import Retention
from headrace.serving.sqlite_store import SqliteStore
from headrace.serving.streams import Streams
from headrace.serving.watches import add, deploy_files, remove

log = structlog.get_logger()
REBUILD_SECONDS_MAX = 3_600


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
        self.lock = RunLock(layout, turn)
        self.lock.take()
        super().__init__(
            project, SqliteStore(layout.store, group_us=project.settings.speed.group_us)
        )
        self.report = report
        self.started_at = now_us()
        self.state, self.reason = "starting", "the log is being opened"
        self.inlets = Inlets(project, self.lag_of)
        self.spark: Any = None
        self.pipelines: dict[str, Pipeline] = {}
        self.schedule: Schedule | None = None
        streams = Streams(Following(project, self.questions.client.run))
        self.hub = Hub(self.store.db, project.settings.subscribe, streams)
        self.observatory = self.seen = LiveObservatory(self)
        self.sinks: Sinks | None = None
        self.alerts: Alerts | None = None
        self.watches: Watches | None = None
        self.access = Access(
            layout.access,
            project.settings.name,
            session_life_us=project.settings.access.session_life_us,
            server_key=server_key,
        )
        self.served = server_key is not None
        self.server: HttpServer | None = None
        self.lineage = lineage_of(project)
        self._stop = threading.Event()
        self._changing = threading.Lock()
        self._connectors: list[threading.Thread] = []

    # Start and stop

    def open(self) -> None:
        """Open the logs, so that events can come in."""
        check_without_spark(self.project)
        self.store.take_over()
        self.inlets.open()

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
        if self.served:
            # What is reported goes into a log that others read, so it opens nothing.
            self.report("serving", {"url": url})
            return url
        self.report("serving", {"url": url, "login": f"{url}/#login={self.access.code(token)}"})
        if first := first_token(self.access):
            self.report("first_token", {"user": ADMIN, "token": first})
        if exposed(http):
            self.report("exposed", {"host": http.host})
        return url

    def start_engine(self) -> None:
        """Start Spark, deploy the project, and bring every view to its first generation."""
        from headrace.spark.session import start_session

        self.reason = "Spark is starting"
        self.spark = start_session(
            self.project.settings.spark,
            app_name=f"headrace-{self.project.settings.name}",
            work=self.layout.work("run"),
        )
        self.report("engine", {"master": self.project.settings.spark.master})
        self.reason = "the project is being compiled"
        self._deploy(compile_with(self.spark, self.project), os_user())
        self.reason = "views are being built"
        self.build_all(only=lambda pipeline: pipeline.needs_catch_up())

    def _deploy(self, plan: Plan, who: str) -> None:
        """Make a plan the deployed one, and all that runs it; nothing is started."""
        alerts = Alerts(plan, self.project, self.store.db, self.submit, self.report)
        self.store.deploy(plan)
        self.store.deploy_rules(plan, self.kept, who)
        self._deploy_watches(plan, who)
        self.alerts = alerts
        self.watches = Watches(
            plan, self.project, self.store.db, self.submit, self.report, self._close_watches
        )
        self.pipelines = pipelines_of(self.spark, self.project, plan, self.store)
        self.lineage.deploy(plan)
        for pipeline in self.pipelines.values():
            pipeline.built = self.lineage.built
        before = self.schedule
        self.schedule = Schedule(
            self.pipelines,
            self.inlets.topics,
            self.project.settings,
            self.report,
            tables=Tables(plan.tables, self.project.folder, self.pipelines, self.store),
            retention=Retention(self.store.db, self.project.settings.alerts.keep_us),
        )
        if before is not None:
            self.schedule.go_on_from(before)
        self.sinks = Sinks(plan, self.project.folder, self.hub.reader, self.submit, self.report)

    def redeploy(self, kept: Kept, who: str, watches: tuple[WatchDefinition, ...] = ()) -> None:
        """Deploy other rules, and shapes of watches, while events come in and questions are
        answered. If they cannot be compiled, nothing changes; if something fails after that, what
        ran before runs again.
        """
        with self._changing:
            if self.state != "running":
                raise NotReady("the project is still starting", hint="try again in a moment.")
            before, rules = self.deployed(), with_rules(self.files, kept.values())
            project = with_watches(rules, self.store, watches)
            plan = compile_with(self.spark, project)
            actions_of(plan, project, self.submit)
            old = self.project, self.kept
            self._stop_work()
            try:
                self.project, self.kept = project, frozenset(kept)
                self._deploy(plan, who)
                self.build_all(only=lambda pipeline: pipeline.needs_catch_up())
            except Exception:
                self.project, self.kept = old
                self._deploy(before, who)
                raise
            finally:
                self._start_work()

    def _deploy_watches(self, plan: Plan, who: str) -> None:
        """Note the watches of the files; no epoch runs now, so what is new begins."""
        said = [watch for watch in plan.watches if watch.name in self.files.watches]
        with self.store.db.write() as db:
            deploy_files(db, said, who, self.store.clock())
        begin_watches(self.store, plan, {shape.name for shape in plan.shapes})

    def admit(self, plans: Sequence[WatchPlan], who: str) -> None:
        """Take in watches of deployed shapes, between two epochs."""
        for action in {action.name: action for plan in plans for action in plan.actions}.values():
            action_of(action, self.project, self.submit)
        with self._changing:
            if self.state != "running":
                raise NotReady("the project is still starting", hint="try again in a moment.")
            self._renew({plan.shape for plan in plans}, lambda: self._add(plans, who))

    def _add(self, plans: Sequence[WatchPlan], who: str) -> None:
        with self.store.db.write() as db:
            for plan in plans:
                add(db, plan, True, who, self.store.clock(), None)

    def dismiss(self, name: str, who: str) -> None:
        """Take a watch away; its constants go at the next closing."""
        with self.store.db.write() as db:
            remove(db, name, who, self.store.clock())

    def _close_watches(self, shapes: set[str]) -> None:
        """Compare no more with the constants of watches that have ended."""
        # A change waits for the thread that asks for this, so it does not wait for the change.
        if self._changing.acquire(blocking=False):
            try:
                self._renew(shapes, lambda: None)
            finally:
                self._changing.release()

    def _renew(self, shapes: set[str], change: Callable[[], None]) -> None:
        """Give shapes other constants, from the next epoch on."""
        assert self.schedule is not None
        tables, plan = self.schedule.tables, self.deployed()
        assert tables is not None

        def renew() -> None:
            change()
            begin_watches(self.store, plan, shapes)
            write_constants(self.project.folder, self.store, plan, shapes)

        names = [name for shape in plan.shapes if shape.name in shapes for name in shape.tables]
        tables.replace(names, renew)

    def writing(self) -> None:
        """A running project is the writer."""

    def build_all(self, only: Callable[[Pipeline], bool] = lambda pipeline: True) -> None:
        """Bring the views of every stream, or of some, to all that is in the log now."""
        assert self.schedule is not None
        for pipeline in self.pipelines.values():
            if only(pipeline) and (promoted := pipeline.catch_up()):
                self.schedule.note_promoted(promoted)

    def check_engine(self) -> None:
        """Fail if Spark is gone: whoever supervises this process starts another."""
        from headrace.spark.session import check_alive

        check_alive()

    def start_flow(self) -> None:
        """Start speed, the schedule and the connectors."""
        self._start_work()
        for name, definition in self.project.streams.items():
            if make := connectors.get(definition.source):
                connector = make(
                    definition, self.inlets.intakes[name], self.project.folder, self.layout.ingest
                )
                self._start_connector(name, connector)
        self.state, self.reason = "running", ""

    def _start_work(self) -> None:
        for pipeline in self.pipelines.values():
            pipeline.speed.start()
        for part in (self.schedule, self.sinks, self.alerts, self.watches):
            assert part is not None
            part.start()

    def _stop_work(self) -> None:
        self.stop_schedule()
        for pipeline in self.pipelines.values():
            pipeline.stop()
        for part in (self.sinks, self.alerts, self.watches):
            if part is not None:
                part.stop()

    def _start_connector(self, name: str, connector: Any) -> None:
        def run() -> None:
            try:
                connector.run(self._stop)
            except HeadraceError as error:
                if self.schedule is not None:
                    self.schedule.problems[f"ingest {name}"] = error.message
                self.report("problem", {"message": str(error)})

        thread = threading.Thread(target=run, name=f"ingest-{name}", daemon=True)
        thread.start()
        self._connectors.append(thread)

    def stop_sources(self) -> None:
        """No more events from connectors."""
        self._stop.set()
        for thread in self._connectors:
            thread.join(timeout=10)

    def stop_schedule(self) -> None:
        """No more archive steps and builds; the one in progress is finished."""
        if self.schedule is not None:
            self.schedule.stop()

    def close(self) -> None:
        """Stop everything, in the opposite order of the start."""
        with self._changing:  # a change that has begun is finished
            self.state = "stopping"
        self.stop_sources()
        self.hub.stop()
        self.seen.stop()
        if self.server is not None:
            self.server.stop()
        self._stop_work()
        self.close_questions()
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

    def status(self) -> Status:
        problems = self.problems()
        state = "degraded" if self.state == "running" and problems else self.state
        plan = self.store.deployed()
        return Status(
            self.project.settings.name,
            state,
            self.reason or "; ".join(problems.values()),
            iso(self.started_at),
            self.server.url if self.server else None,
            self.stream_statuses(plan, problems) if plan else [],
            self.view_statuses(plan) if plan else [],
            self.sink_statuses(plan) if plan else [],
            self.table_statuses(plan) if plan else [],
            self.rulebook.rules(),
            self.watchbook.numbers(list(self.watches.problems.values()) if self.watches else []),
        )

    def problems(self) -> dict[str, str]:
        found = dict(self.schedule.problems) if self.schedule else {}
        found |= self.sinks.problems if self.sinks else {}
        found |= self.alerts.problems if self.alerts else {}
        found |= self.watches.problems if self.watches else {}
        for name, pipeline in self.pipelines.items():
            if pipeline.problem:
                found[f"speed {name}"] = f"speed of stream '{name}' failed: {pipeline.problem}"
        return found

    def signs(self) -> Signs:
        started = self.spark is not None
        return Signs(
            running=True,
            started_at_us=self.started_at,
            spark_version=self.spark.version if started else None,
            jvm_pid=_jvm_pid(self.spark) if started else None,
            problems=self.problems(),
            progress=self._progress,
            rebuild=self._rebuild_of,
        )

    def _progress(self, flow: str) -> list[Any]:
        """What Spark says of a flow's newest micro-batches."""
        pipeline = self.pipelines.get(flow)
        query = pipeline.speed.query if pipeline else None
        # A JVM that was killed says nothing, and what the store has of the epochs is still told.
        with contextlib.suppress(Py4JError, OSError):
            return [msgspec.json.decode(b.json) for b in query.recentProgress] if query else []
        return []

    def _rebuild_of(self, flow: str, view: str) -> Rebuild | None:
        pipeline = self.pipelines.get(flow)
        if self.schedule is None or pipeline is None:
            return None
        events = pipeline.history_events()
        return rebuild_of(self.schedule.rebuilding(view), events, pipeline.pace)

    def ready(self) -> tuple[bool, str]:
        return self.state == "running", self.reason

    def rebuild(self, view: str) -> dict[str, Any]:
        plan = self.deployed()
        found = plan.view(view)
        if found is None or not found.stream:
            raise NotFound(f"there is no view '{view}' that is kept")
        if self.schedule is None:
            raise NotReady("the project is still starting")
        promoted = self.schedule.rebuild(found.stream, found.name).result(REBUILD_SECONDS_MAX)
        return rebuilt(found.name, promoted)

    def subscribe(
        self, text: str, after: str | None = None, news: Callable[[], None] = lambda: None
    ) -> Hearing:
        return self.hub.join(text, after, news)

    def metrics(self) -> bytes:
        tally, open = self.rulebook.tally(), self.hub.hearers
        return exposition(self.status(), tally, self.layout.state, open)

    # Numbers for the terminal

    def lag_events(self) -> int:
        """Events in the logs that speed has not committed."""
        return sum(pipeline.lag_events() for pipeline in self.pipelines.values())

    def lag_of(self, stream: str) -> int:
        """How many events of a stream wait for speed; none before it runs, because the log is the
        buffer of a start."""
        pipeline = self.pipelines.get(stream)
        return pipeline.lag_events() if pipeline and pipeline.speed_runs else 0

    def events_in(self) -> int:
        return sum(intake.counters.accepted for intake in self.inlets.intakes.values())


def _jvm_pid(spark: Any) -> int | None:
    """The process of Spark's JVM; None where another process has started it."""
    process = spark.sparkContext._gateway.proc
    return process.pid if process is not None else None
