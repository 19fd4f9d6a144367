"""The first archive step of each stream, written while the project is compiled and its tables are
read: these keep one core busy, in Spark's driver, and archiving needs neither.

Nothing is committed before the plan is deployed: until then the files are referenced by no version
of the master, as after a crash. tests/run/test_archive_drafts.py checks both.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any

import structlog

from headrace.compile.passes import stream_plan
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.master.archive import Archive, WrittenRange

EVENTS_MIN = 100_000  # fewer are written faster than a job is started
log = structlog.get_logger()


class ArchiveDrafts:
    """Written ranges of a project's streams."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._written: Future[dict[str, WrittenRange]] = Future()
        self._written.set_result({})

    def start(self, spark: Future[Any]) -> None:
        """Begin to write, as soon as Spark has started."""
        self._written = Future()
        threading.Thread(
            target=self._run, args=(spark,), name="archive drafts", daemon=True
        ).start()

    def of(self, stream: str) -> WrittenRange | None:
        """The written range of a stream, or None; waits for one that is still being written."""
        return self._written.result().get(stream)

    def _run(self, spark: Future[Any]) -> None:
        written: dict[str, WrittenRange] = {}
        try:
            written |= self._write(spark.result())
        except Exception as error:
            # The step itself meets the same error, and reports it.
            log.info("archive.draft_failed", why=str(error))
        self._written.set_result(written)

    def _write(self, spark: Any) -> dict[str, WrittenRange]:
        layout, settings = Layout.of(self.project), self.project.settings
        plans = [stream_plan(stream, self.project) for stream in self.project.streams.values()]
        archives = [
            Archive(spark, plan, layout.log(plan.name), layout.master(plan.name)) for plan in plans
        ]
        return {
            archive.stream.name: archive.write(settings.archive.step_events_max)
            for archive in archives
            if archive.waiting() >= EVENTS_MIN
        }
