"""A folder of files, imported once each or followed as they grow.

    CREATE STREAM clicks (…) WITH (source = 'files', path = 'inbox/*.ndjson');

Import takes a file when it has been still for one poll, so that a file is not read while it is
copied in. Tail takes what is there and waits for the end of an unfinished last line. A file is
known by its content: one that was renamed, or written again with the same beginning, continues at
its cursor, and one with another content is read from its beginning. Everything is taken at least
once; a record that cannot be read whole is taken as a dead letter with its beginning, and reported
as a problem of the source. tests/ingest/test_files.py checks this on real files.
"""

from __future__ import annotations

import gzip
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from headrace.core.problems import Problems, reason_of
from headrace.core.time import MICROSECOND, SECOND, Clock, now_us
from headrace.define.definitions import StreamDefinition
from headrace.ingest.file_cursors import FileCursor, known_cursor
from headrace.ingest.file_problems import FileProblems
from headrace.ingest.intake import Intake
from headrace.ingest.option_values import duration, pattern, switch, word
from headrace.ingest.options import bad_value, option, read_options
from headrace.ingest.records import Chunk, file_chunks, file_kind, unreadable
from headrace.ingest.retry import accept_with_retry

_SAVE_AGAIN_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesOptions:
    path: str = option(None, "pattern of files in the project, such as 'inbox/*.ndjson'", pattern)
    mode: str = option(
        "import", "import: each file once; tail: follow growing files", word("import", "tail")
    )
    poll: int = option("1 second", "time between two scans of the folder", duration)
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


class FileConnector:
    """Reads the files of one stream until it is stopped."""

    def __init__(
        self,
        definition: StreamDefinition,
        intake: Intake,
        project: Path,
        problems: Problems,
        *,
        clock: Clock = now_us,
    ) -> None:
        self._options = read_files_options(definition)
        self._definition, self._intake, self._clock = definition, intake, clock
        settings = intake.settings
        self._project, written = project.resolve(), (settings.state, settings.output)
        own = (intake.folder, *(self._project / name for name in written))
        self._own = tuple(path.resolve() for path in own)
        self._cursors = intake.file_cursors
        self._seen: dict[str, FileCursor] = {}
        self._before: Mapping[str, FileCursor] = {}
        self._problems = FileProblems(definition.name, problems)

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self.scan(stop)
            stop.wait(self._options.poll / SECOND)

    def scan(self, stop: threading.Event) -> None:
        """Read all that is new, once."""
        paths = {str(path.relative_to(self._project)): path for path in self._paths()}
        self._cursors.forget_gone(paths)
        self._problems.keep(paths)
        # Files may have been renamed to each other's names, so cursors are compared as they were.
        self._before = self._cursors.cursors()
        self._seen = {name: cursor for name, cursor in self._seen.items() if name in paths}
        for name, path in paths.items():
            if stop.is_set():
                return
            try:
                self._read_new(name, path, stop)
                self._problems.well(name)
            except OSError as error:
                self._problems.failed(name, reason_of(error))

    def _paths(self) -> list[Path]:
        """The files that match, in order, inside the project; never what the project writes,
        whatever the pattern says and wherever a link leads.
        """
        found = sorted(self._project.glob(self._options.path))
        return [path for path in found if path.is_file() and self._given(path.resolve())]

    def _given(self, path: Path) -> bool:
        inside = path.is_relative_to(self._project)
        return inside and not any(path.is_relative_to(own) for own in self._own)

    def _read_new(self, name: str, path: Path, stop: threading.Event) -> None:
        cursor, now = self._cursors.cursor(name), FileCursor.of(path.stat())
        if cursor and cursor.ended and cursor.unchanged(now):
            return
        if self._options.mode == "tail" and name.endswith(".gz"):
            self._problems.passed_over(
                name, "a compressed file cannot be followed; set mode = 'import'"
            )
        elif self._options.mode == "tail" or self._still(name, now):
            with path.open("rb") as file:
                self._take(name, file, stop)

    def _still(self, name: str, now: FileCursor) -> bool:
        """Whether the file is unchanged since the last poll."""
        before, self._seen[name] = self._seen.get(name), now
        age_us = self._clock() - now.changed_ns // (1_000 * MICROSECOND)
        return age_us > self._options.poll or (before is not None and before.unchanged(now))

    def _take(self, name: str, file: BinaryIO, stop: threading.Event) -> None:
        now = FileCursor.of(os.fstat(file.fileno()))
        packed = name.endswith(".gz")
        if known := known_cursor(self._before, name, now, file, packed):
            now = known.at(now)
        cursor = now
        for chunk in self._chunks(name, file, cursor.taken, packed):
            with self._cursors.step():
                if stop.is_set() or not self._send(name, chunk, stop):
                    return
                cursor = cursor.moved(file, chunk.taken, packed)
                if not self._save(name, cursor, stop):
                    return
        self._save(name, msgspec.structs.replace(cursor, ended=True), stop)

    def _chunks(self, name: str, file: BinaryIO, start: int, packed: bool) -> Iterator[Chunk]:
        definition = self._definition
        return file_chunks(
            cast(BinaryIO, gzip.GzipFile(fileobj=file)) if packed else file,
            file_kind(name, definition.format),
            definition.schema.stored,
            start=start,
            header=self._options.header,
            convert=definition.format == "json",
            record_bytes_max=self._intake.settings.log.event_bytes_max,
            whole=self._options.mode == "import",
        )

    def _send(self, name: str, chunk: Chunk, stop: threading.Event) -> bool:
        limit = self._intake.settings.log.event_bytes_max
        records = [record for record in chunk.records if len(record) <= limit]
        unread = unreadable(chunk, limit)
        if records and accept_with_retry(self._intake, records, stop) is None:
            return False
        beginnings, marks = [one.raw for one in unread], bytes(one.mark for one in unread)
        if unread and accept_with_retry(self._intake, beginnings, stop, marks) is None:
            return False
        for one in unread:
            self._problems.passed_over(name, one.why)
        return True

    def _save(self, name: str, cursor: FileCursor, stop: threading.Event) -> bool:
        """Retry until the cursor is saved: giving up would send the same records again at every
        poll.
        """
        while True:
            try:
                self._cursors.save({name: cursor})
                return True
            except OSError as error:
                sentence = f"its progress cannot be saved: {reason_of(error)}"
                self._problems.failed(name, sentence)
            if stop.wait(_SAVE_AGAIN_S):
                return False
