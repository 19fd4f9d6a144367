"""The intake of every stream, and its log, open for writing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from headrace.compile.passes import stream_plan
from headrace.core.errors import Conflict, NotFound
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.ingest.file_cursors import former_path, open_cursors
from headrace.ingest.importer import Importer
from headrace.ingest.intake import Intake, Receipt
from headrace.log.opening import open_writer
from headrace.log.protocol import LogWriter
from headrace.master.originals import originals


class StreamIntakes:
    """Logs and intakes by stream. `lag` returns the number of events that speed has not committed;
    `appended` is called when more events are durable.
    """

    def __init__(
        self,
        project: Project,
        lag: Callable[[str], int] = lambda stream: 0,
        appended: Callable[[str], None] = lambda stream: None,
    ) -> None:
        self.project, self.lag, self.appended = project, lag, appended
        self.topics: dict[str, LogWriter] = {}
        self.intakes: dict[str, Intake] = {}
        self.importers: dict[str, Importer] = {}

    def open(self) -> None:
        for name in self.project.streams:
            self.intake(name)

    def intake(self, stream: str) -> Intake:
        """The intake of a stream, opened at its first use."""
        known = {name.lower(): definition for name, definition in self.project.streams.items()}
        definition = known.get(stream.lower())
        if definition is None:
            names = ", ".join(self.project.streams) or "none"
            raise NotFound(f"there is no stream '{stream}'", hint=f"available streams: {names}.")
        if definition.name not in self.intakes:
            settings, layout = self.project.settings, Layout.of(self.project)
            partitions = stream_plan(definition, self.project).partitions
            topic = open_writer(
                layout.log(definition.name),
                partitions,
                segment_bytes_max=settings.log.segment_bytes_max,
            )
            self.topics[definition.name] = topic
            if definition.source == "files":
                former = former_path(layout.former_cursors, definition.name)
                open_cursors(topic.folder, former, topic.end())
            self.intakes[definition.name] = Intake(
                definition,
                topic,
                settings=settings,
                lag=partial(self.lag, definition.name),
                history=partial(originals, layout.master(definition.name), partitions),
                appended=partial(self.appended, definition.name),
            )
            self.importers[definition.name] = Importer(self.intakes[definition.name])
            self.importers[definition.name].recover()
        return self.intakes[definition.name]

    def import_part(self, stream: str, part: str, *, running: bool) -> Receipt:
        """Take a part of an import into a stream's log."""
        definition = self.intake(stream).definition
        if running and definition.source == "files":
            raise Conflict(
                f"stream '{definition.name}' takes files itself while the project is running",
                hint="stop the project to import a backlog, or leave the files to the stream.",
                origin=definition.origin,
            )
        return self.importers[definition.name].take(part)

    def close(self) -> None:
        for topic in self.topics.values():
            topic.close()
        for intake in self.intakes.values():
            intake.close()
