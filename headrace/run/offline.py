"""A project that does not run: questions are answered from its files, and events can be appended
to its log.

Whatever writes takes the run lock for that time, so it cannot get in the way of a start, and is
refused where a start would be: in a state whose parts do not go together.
tests/run/test_offline.py checks each method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future

from headrace.api.service import ProjectStatus, RebuildResult
from headrace.compile.plan import WatchPlan
from headrace.core.errors import HeadraceError, Unavailable
from headrace.define.definitions import WatchDefinition
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.ingest.intake import Receipt
from headrace.run.inlets import Inlets
from headrace.run.lock import RunLock
from headrace.run.metrics import exposition
from headrace.run.parts import check_parts
from headrace.run.project_service import ProjectService, stopped_status
from headrace.run.rulebook import Kept
from headrace.run.rules import with_rules
from headrace.run.watches import with_watches
from headrace.serving.rules import keep_rules
from headrace.serving.sqlite_store import SqliteStore
from headrace.serving.subscriber import OpenSubscription
from headrace.serving.watches import add, remove


class Offline(ProjectService):
    """`Service` for a stopped project; close it when done."""

    def __init__(self, project: Project) -> None:
        layout = Layout.of(project)
        layout.make_state()
        super().__init__(
            project, SqliteStore(layout.store, group_us=project.settings.speed.group_us)
        )
        self._lock: RunLock | None = None
        self.inlets = Inlets(project)

    def submit(self, stream: str, records: Sequence[bytes]) -> Future[Receipt]:
        self._take_lock()
        return self.inlets.intake(stream).submit(records)

    def _take_lock(self) -> None:
        if self._lock is None:
            lock = RunLock(self.layout)
            lock.take()
            try:
                check_parts(self.layout, self.project.streams)
            except HeadraceError:
                lock.release()
                raise
            self._lock = lock

    def writing(self) -> None:
        """The changes of a stopped project's store are made as its writer."""
        self._take_lock()
        if not self.store.db.token:
            self.store.take_over()

    def redeploy(self, kept: Kept, who: str, watches: tuple[WatchDefinition, ...] = ()) -> None:
        """Compile with these rules and watches, and keep the rules for the next start."""
        from headrace.run.compiling import compile_in_spark

        project = with_watches(with_rules(self.files, kept.values()), self.store, watches)
        self.writing()
        compile_in_spark(project)
        with self.store.write() as db:
            texts = {name: rule.text for name, rule in kept.items()}
            keep_rules(db, texts, who, self.store.clock())
        self.project, self.kept = project, frozenset(kept)

    def admit(self, plans: Sequence[WatchPlan], who: str) -> None:
        """Watches begin when the project starts."""
        self.writing()
        with self.store.write() as db:
            for plan in plans:
                add(db, plan, True, who, self.store.clock(), None)

    def dismiss(self, name: str, who: str) -> None:
        self.writing()
        with self.store.write() as db:
            remove(db, name, who, self.store.clock())

    def subscribe(
        self, text: str, after: str | None = None, news: Callable[[], None] = lambda: None
    ) -> OpenSubscription:
        raise Unavailable(
            "the project does not run, so nothing of it changes",
            hint="start it with `headrace run`.",
        )

    def status(self) -> ProjectStatus:
        return stopped_status(self)

    def ready(self) -> tuple[bool, str]:
        return False, "the project does not run"

    def rebuild(self, view: str) -> RebuildResult:
        """Start Spark for as long as the build takes."""
        from headrace.run.once import rebuild_once

        self._take_lock()
        return rebuild_once(self, view)

    def metrics(self) -> bytes:
        return exposition(self.status(), self.rule_service.tally(), self.layout.state)

    def close(self) -> None:
        self.inlets.close()
        self.close_questions()
        self.store.close()
        if self._lock is not None:
            self._lock.release()
