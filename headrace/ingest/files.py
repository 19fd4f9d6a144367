"""A folder of files, imported once each or followed as they grow.

    CREATE STREAM clicks (…) WITH (source = 'files', path = 'inbox/*.ndjson');

Import takes a file when it has been still for one poll, so that a file is not read while it is
copied in. Tail takes what is there and waits for the end of an unfinished last line. A file is
known by its content: one that was renamed, or written anew with the same beginning, goes on where
it was, and one that has another content is read from its beginning. What cannot be read is passed
over, logged, and kept in `problems`; everything else is taken at least once.
tests/ingest/test_files.py checks this on real files.
"""

from __future__ import annotations

import gzip
import os
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import msgspec
import structlog

from headrace.core.time import MICROSECOND, SECOND, Clock, now_us
from headrace.define.definitions import StreamDefinition
from headrace.ingest.intake import Intake
from headrace.ingest.lines import Lines
from headrace.ingest.options import bad_value, option, read_options
from headrace.ingest.patience import accept_patiently
from headrace.ingest.progress import Mark, Progress
from headrace.ingest.reading import duration, pattern, switch, word
from headrace.ingest.records import Chunk, Kind, header_of, read_chunks

_PROBLEMS_MAX = 100
_SAVE_AGAIN_S = 1.0
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesOptions:
    path: str = option(None, "pattern of files in the project, such as 'inbox/*.ndjson'", pattern)
    mode: str = option(
        "import", "import: each file once; tail: follow growing files", word("import", "tail")
    )
    poll: int = option("1 second", "time between two looks at the folder", duration)
    header: bool = option(
        "true", "whether the first line of a CSV file names its columns", switch("true", "false")
    )


def read_files_options(definition: StreamDefinition) -> FilesOptions:
    options = read_options(definition, FilesOptions)
    if options.mode == "tail" and options.path.endswith(".gz"):
        must_be = "'import' for compressed files"
        raise bad_value(
            definition, "mode", "tail", must_be, "a compressed file cannot be followed."
        )
    return options


class FilesConnector:
    """Reads the files of one stream until it is told to stop."""

    def __init__(
        self,
        definition: StreamDefinition,
        intake: Intake,
        project: Path,
        state: Path,
        *,
        clock: Clock = now_us,
    ) -> None:
        self._options = read_files_options(definition)
        self._definition, self._intake, self._clock = definition, intake, clock
        settings = intake.settings
        self._project, written = project.resolve(), (settings.state, settings.output)
        self._own = (state.resolve(), *((self._project / name).resolve() for name in written))
        self._progress = Progress(state, definition.name)
        self._seen: dict[str, Mark] = {}
        self._before: Mapping[str, Mark] = {}
        self.problems: deque[str] = deque(maxlen=_PROBLEMS_MAX)

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self.look(stop)
            stop.wait(self._options.poll / SECOND)

    def look(self, stop: threading.Event) -> None:
        """Take all that is new, once."""
        paths = {str(path.relative_to(self._project)): path for path in self._paths()}
        self._progress.forget_gone(paths)
        # Names may have been passed on from file to file, so marks are compared as they were.
        self._before = self._progress.marks()
        self._seen = {name: mark for name, mark in self._seen.items() if name in paths}
        for name, path in paths.items():
            if stop.is_set():
                return
            try:
                self._look_at(name, path, stop)
            except OSError as error:
                self._report(name, str(error))

    def _paths(self) -> list[Path]:
        """The files that match, in order, inside the project; never what the project writes,
        whatever the pattern says and wherever a link leads.
        """
        found = sorted(self._project.glob(self._options.path))
        return [path for path in found if path.is_file() and self._given(path.resolve())]

    def _given(self, path: Path) -> bool:
        inside = path.is_relative_to(self._project)
        return inside and not any(path.is_relative_to(own) for own in self._own)

    def _look_at(self, name: str, path: Path, stop: threading.Event) -> None:
        mark, now = self._progress.mark(name), Mark.of(path.stat())
        if mark and mark.ended and mark.unchanged(now):
            return
        if self._options.mode == "tail" and name.endswith(".gz"):
            self._report(name, "a packed file cannot be followed; import it")
        elif self._options.mode == "tail" or self._still(name, now):
            with path.open("rb") as file:
                self._take(name, file, mark, stop)

    def _still(self, name: str, now: Mark) -> bool:
        """Whether the file looks as it did one poll ago."""
        before, self._seen[name] = self._seen.get(name), now
        age_us = self._clock() - now.changed_ns // (1_000 * MICROSECOND)
        return age_us > self._options.poll or (before is not None and before.unchanged(now))

    def _take(self, name: str, file: BinaryIO, mark: Mark | None, stop: threading.Event) -> None:
        now = Mark.of(os.fstat(file.fileno()))
        packed = name.endswith(".gz")
        if known := self._known(mark, now, file, packed):
            now = msgspec.structs.replace(
                now, taken=known.taken, crc=known.crc, content=known.content
            )
        mark = now
        for chunk in self._chunks(name, file, mark.taken, packed):
            with self._progress.step():
                if stop.is_set() or not self._send(name, chunk, stop):
                    return
                mark = mark.moved(file, chunk.taken, packed)
                if not self._save(name, mark, stop):
                    return
        self._save(name, msgspec.structs.replace(mark, ended=True), stop)

    def _known(self, mark: Mark | None, now: Mark, file: BinaryIO, packed: bool) -> Mark | None:
        """The mark up to which this file was taken, under this name or under another."""
        if mark and mark.continues(now, file, packed):
            return mark
        others = (other for other in self._before.values() if other.taken and other.renamed(now))
        same = [other for other in others if other.continues(now, file, packed)]
        return max(same, key=lambda other: other.taken, default=None)

    def _chunks(self, name: str, file: BinaryIO, start: int, packed: bool) -> Iterator[Chunk]:
        definition = self._definition
        csv = definition.format == "csv" or name.removesuffix(".gz").endswith(".csv")
        stream = cast(BinaryIO, gzip.GzipFile(fileobj=file)) if packed else file
        names = None if self._options.header else list(definition.schema.stored.names)
        if start:
            names = names or (header_of(stream, definition.schema.stored) if csv else None)
            stream.seek(start)
        limit = self._intake.settings.log.event_bytes_max
        whole = self._options.mode == "import"
        lines = Lines(stream, start=start, line_bytes_max=limit, whole=whole)
        kind: Kind = "csv" if csv else "ndjson"
        convert = definition.format == "json"
        return read_chunks(lines, kind, definition.schema.stored, names=names, convert=convert)

    def _send(self, name: str, chunk: Chunk, stop: threading.Event) -> bool:
        limit = self._intake.settings.log.event_bytes_max
        records = [record for record in chunk.records if len(record) <= limit]
        if len(records) < len(chunk.records):
            told = f"{len(chunk.records) - len(records)} records before byte {chunk.taken} "
            self._report(name, told + f"are above the limit of {limit} bytes")
        if records and accept_patiently(self._intake, records, stop) is None:
            return False
        for problem in chunk.problems:
            self._report(name, problem)
        return True

    def _save(self, name: str, mark: Mark, stop: threading.Event) -> bool:
        """Save until it works: giving up would send the same records again at every poll."""
        while True:
            try:
                self._progress.save(name, mark)
                return True
            except OSError as error:
                self._report(name, f"its progress cannot be saved: {error}")
            if stop.wait(_SAVE_AGAIN_S):
                return False

    def _report(self, name: str, problem: str) -> None:
        if (told := f"{name}: {problem}") in self.problems:
            return  # the same at every poll says nothing new
        self.problems.append(told)
        _log.warning("file problem", stream=self._definition.name, file=name, problem=problem)
