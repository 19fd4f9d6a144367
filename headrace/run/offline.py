"""A project that does not run: questions are answered from its files, and events can be appended to its log.

Whatever writes takes the run lock for that time, so it cannot get in the way of a start.
tests/run/test_offline.py checks each method.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from headrace.api.service import Status
from headrace.compile.passes import stream_plan
from headrace.core.errors import NotFound
from headrace.define.project import Project
from headrace.ingest.intake import Intake, Receipt
from headrace.log.topic import Topic
from headrace.run.layout import Layout
from headrace.run.lock import RunLock
from headrace.run.metrics import exposition
from headrace.run.project_service import ProjectService, stopped_status
from headrace.serving.sqlite_store import SqliteStore


class Offline(ProjectService):
    """`Service` for a stopped project; close it when done."""

    def __init__(self, project: Project) -> None:
        layout = Layout.of(project)
        super().__init__(project, SqliteStore(layout.store, group_us=project.settings.speed.group_us))
        self._lock: RunLock | None = None
        self._topics: dict[str, Topic] = {}
        self._intakes: dict[str, Intake] = {}

    def submit(self, stream: str, records: Sequence[bytes]) -> Future[Receipt]:
        return self._intake(stream).submit(records)

    def _intake(self, stream: str) -> Intake:
        definition = next((d for n, d in self.project.streams.items() if n.lower() == stream.lower()), None)
        if definition is None:
            known = ", ".join(self.project.streams) or "none"
            raise NotFound(f"there is no stream '{stream}'", hint=f"there are: {known}.")
        if definition.name not in self._intakes:
            self._take_lock()
            plan = stream_plan(definition, self.project)
            topic = Topic.open(
                self.layout.log(definition.name),
                plan.partitions,
                segment_bytes_max=self.project.settings.log.segment_bytes_max,
            )
            self._topics[definition.name] = topic
            self._intakes[definition.name] = Intake(definition, topic, settings=self.project.settings)
        return self._intakes[definition.name]

    def _take_lock(self) -> None:
        if self._lock is None:
            lock = RunLock(self.layout)
            lock.take()
            self._lock = lock

    def status(self) -> Status:
        return stopped_status(self)

    def ready(self) -> tuple[bool, str]:
        return False, "the project does not run"

    def rebuild(self, view: str) -> dict[str, Any]:
        """Start Spark for as long as the build takes."""
        from headrace.run.once import rebuild_once

        self._take_lock()
        return rebuild_once(self, view)

    def metrics(self) -> bytes:
        return exposition(self.status())

    def close(self) -> None:
        for topic in self._topics.values():
            topic.close()
        self.close_questions()
        self.store.close()
        if self._lock is not None:
            self._lock.release()
