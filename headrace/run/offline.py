"""A stopped project: queries are answered from its files, and events can be appended to its log.

Writing requires the run lock, so that the project cannot start meanwhile, and a consistent state,
as a start does. tests/run/test_offline.py checks each method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future

from headrace.access.caller import OWNER, Caller
from headrace.api.resources.status import ProjectStatus
from headrace.api.service import RebuildResult, Sender
from headrace.core.errors import HeadraceError, Unavailable
from headrace.define.definitions import WatchDefinition
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.ingest.intake import Receipt
from headrace.run.added_definitions import with_rules, with_watches
from headrace.run.lock import RunLock
from headrace.run.metrics import exposition
from headrace.run.project_service import ProjectService, stopped_status
from headrace.run.rule_service import AddedRules
from headrace.run.state_check import check_state
from headrace.run.stream_intakes import StreamIntakes
from headrace.serving.opening import open_store
from headrace.serving.rules import keep_rules
from headrace.serving.subscriber import OpenSubscription


class Offline(ProjectService):
    """`Service` of a stopped project; close it when done."""

    def __init__(self, project: Project) -> None:
        layout = Layout.of(project)
        layout.make_state()
        super().__init__(
            project, open_store(layout.store, group_us=project.settings.speed.group_us)
        )
        self._lock: RunLock | None = None
        self.stream_intakes = StreamIntakes(project)

    def submit(self, stream: str, records: Sequence[bytes]) -> Future[Receipt]:
        self._take_lock()
        return self.stream_intakes.intake(stream).submit(records)

    def sender(self, stream: str) -> Sender:
        self._take_lock()
        return self.stream_intakes.intake(stream).submit_all

    def import_part(self, stream: str, part: str) -> Receipt:
        self._take_lock()
        return self.stream_intakes.import_part(stream, part, running=False)

    def _take_lock(self) -> None:
        if self._lock is None:
            lock = RunLock(self.layout)
            lock.acquire()
            try:
                check_state(self.layout, self.project.streams)
            except HeadraceError:
                lock.release()
                raise
            self._lock = lock

    def become_writer(self) -> None:
        """Take the run lock, and become the writer of the store."""
        self._take_lock()
        if not self.store.db.token:
            self.store.take_over()

    def redeploy(
        self, added: AddedRules, who: str, watches: tuple[WatchDefinition, ...] = ()
    ) -> None:
        """Compile with these rules and watches, and store the rules for the next start."""
        from headrace.run.compiling import compile_in_spark

        project = with_watches(with_rules(self.files, added.values()), self.store, watches)
        self.become_writer()
        compile_in_spark(project)
        with self.store.write() as db:
            texts = {name: rule.text for name, rule in added.items()}
            keep_rules(db, texts, who, self.store.clock())
        self.project, self.added = project, frozenset(added)

    def subscribe(
        self,
        text: str,
        after: str | None = None,
        news: Callable[[], None] = lambda: None,
        caller: Caller = OWNER,
    ) -> OpenSubscription:
        raise Unavailable(
            "the project is not running, so nothing can be subscribed to",
            hint="start it with `headrace run`.",
        )

    def status(self) -> ProjectStatus:
        return stopped_status(self)

    def ready(self) -> tuple[bool, str]:
        return False, "the project is not running"

    def rebuild(self, view: str) -> RebuildResult:
        """Start Spark, build the view, and stop Spark."""
        from headrace.run.pipelines import rebuild_once

        self._take_lock()
        self.stream_intakes.open()  # a build reads up to the durable marks, which this repairs
        return rebuild_once(self, view)

    def metrics(self) -> bytes:
        return exposition(self.status(), self.rule_service.tally(), self.layout.state)

    def close(self) -> None:
        self.stream_intakes.close()
        self.query_service.close()
        self.store.close()
        if self._lock is not None:
            self._lock.release()
