"""A running project: ingest, log, archive, speed, batch and serving in one process.

Ingest comes first, so that producers can send while Spark starts. Stopping goes the other way
round, and whatever it leaves undone is found again at the next start: the log and the store are
the truth. tests/run/test_instance.py checks the order of the start, tests/run/test_runs.py runs
it whole; tests/run/test_kills.py kills it at each failpoint.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import structlog

from headrace.access.access import Access
from headrace.access.run import ADMIN, begin_job, begin_run, end_run, first_token
from headrace.api.observed.about import Rebuild
from headrace.api.server import HttpServer
from headrace.api.service import Rebuilt, Status
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
from headrace.run.alerts import action_of, actions_of
from headrace.run.compiling import check_without_spark, compile_with
from headrace.run.constants import begin_watches
from headrace.run.deployment import Deployment, Ground
from headrace.run.following import Following
from headrace.run.inlets import Inlets
from headrace.run.layout import Layout
from headrace.run.lock import RunLock
from headrace.run.metrics import exposition
from headrace.run.observatory.live import LiveObservatory
from headrace.run.observatory.subject import Signs
from headrace.run.once import rebuilt
from headrace.run.outlet import lineage_of
from headrace.run.project_service import ProjectService
from headrace.run.rulebook import Kept
from headrace.run.rules import with_rules
from headrace.run.watches import with_watches
from headrace.serving.hearer import Hearing
from headrace.serving.hub import Hub
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
        self.deployment: Deployment | None = None
        streams = Streams(Following(project, self.questions.client.run))
        self.hub = Hub(self.store.db, project.settings.subscribe, streams)
        self.observatory = self.seen = LiveObservatory(self)
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
        self._deploy(self._planned(self.project), os_user())
        self.reason = "views are being built"
        self.working().build(only=lambda pipeline: pipeline.needs_catch_up())

    def _planned(self, project: Project) -> Plan:
        """The plan of a project, whose actions can all be done; else it is refused, and nothing has
        changed.
        """
        plan = compile_with(self.spark, project)
        actions_of(plan, project, self.submit)
        return plan

    def _deploy(self, plan: Plan, who: str) -> None:
        """Make a plan the deployed one, and all that runs it; nothing is started."""
        self.store.deploy(plan)
        self.store.deploy_rules(plan, self.kept, who)
        self._deploy_watches(plan, who)
        ground = Ground(
            self.spark,
            self.store,
            self.inlets.topics,
            self.hub,
            self.lineage,
            self.submit,
            self.report,
            self._close_watches,
        )
        self.deployment = Deployment.of(ground, self.project, plan, self.deployment)

    def working(self) -> Deployment:
        """What runs the deployed plan; NotReady before there is one."""
        if self.deployment is None:
            raise NotReady("the project is still starting", hint="try again in a moment.")
        return self.deployment

    def redeploy(self, kept: Kept, who: str, watches: tuple[WatchDefinition, ...] = ()) -> None:
        """Deploy other rules, and shapes of watches, while events come in and questions are
        answered. If they cannot be compiled, nothing changes; if something fails after that, what
        ran before runs again.
        """
        with self._changing:
            running = self._running()
            rules = with_rules(self.files, kept.values())
            project = with_watches(rules, self.store, watches)
            plan = self._planned(project)
            old = self.project, self.kept
            running.stop()
            try:
                self.project, self.kept = project, frozenset(kept)
                self._deploy(plan, who)
                self.working().build(only=lambda pipeline: pipeline.needs_catch_up())
            except Exception:
                self.project, self.kept = old
                self._deploy(running.plan, who)
                raise
            finally:
                self.working().start()

    def _running(self) -> Deployment:
        """What may be changed now; NotReady while it is started or stopped."""
        if self.state != "running":
            raise NotReady("the project is still starting", hint="try again in a moment.")
        return self.working()

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
            self._running().renew({plan.shape for plan in plans}, lambda: self._add(plans, who))

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
                self.working().renew(shapes)
            finally:
                self._changing.release()

    def writing(self) -> None:
        """A running project is the writer."""

    def check_engine(self) -> None:
        """Fail if Spark is gone: whoever supervises this process starts another."""
        from headrace.spark.session import check_alive

        check_alive()

    def start_flow(self) -> None:
        """Start speed, the schedule and the connectors."""
        self.working().start()
        for name, definition in self.project.streams.items():
            if make := connectors.get(definition.source):
                connector = make(
                    definition, self.inlets.intakes[name], self.project.folder, self.layout.ingest
                )
                self._start_connector(name, connector)
        self.state, self.reason = "running", ""

    def _start_connector(self, name: str, connector: Any) -> None:
        def run() -> None:
            try:
                connector.run(self._stop)
            except HeadraceError as error:
                self.working().schedule.problems[f"ingest {name}"] = error.message
                self.report("problem", {"message": str(error)})

        thread = threading.Thread(target=run, name=f"ingest-{name}", daemon=True)
        thread.start()
        self._connectors.append(thread)

    def stop_sources(self) -> None:
        """No more events from connectors."""
        self._stop.set()
        for thread in self._connectors:
            thread.join(timeout=10)

    def close(self) -> None:
        """Stop everything, in the opposite order of the start."""
        with self._changing:  # a change that has begun is finished
            self.state = "stopping"
        self.stop_sources()
        self.hub.stop()
        self.seen.stop()
        if self.server is not None:
            self.server.stop()
        if self.deployment is not None:
            self.deployment.stop()
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
            self.watchbook.numbers(
                list(self.deployment.watches.problems.values()) if self.deployment else []
            ),
        )

    def problems(self) -> dict[str, str]:
        return self.deployment.problems() if self.deployment else {}

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
        return self.deployment.progress(flow) if self.deployment else []

    def _rebuild_of(self, flow: str, view: str) -> Rebuild | None:
        return self.deployment.rebuild_of(flow, view) if self.deployment else None

    def ready(self) -> tuple[bool, str]:
        return self.state == "running", self.reason

    def rebuild(self, view: str) -> Rebuilt:
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

    def metrics(self) -> bytes:
        tally, open = self.rulebook.tally(), self.hub.hearers
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
