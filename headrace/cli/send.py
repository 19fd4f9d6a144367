"""`headrace send`: the events of a file, acknowledged chunk by chunk.

One chunk is on its way at a time, so what was acknowledged is always a beginning of the file. When
a send fails midway, the receipt of that beginning is shown with the error, and the exit code is 1.
Sending the file again is safe for a stream with an id: what was taken before is a duplicate.
tests/cli/test_send.py checks the counts, also when the third chunk fails.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn
from rich.text import Text

from headrace.api.service import Service
from headrace.cli.failure import Fields, fields_of, lines_of
from headrace.cli.folder import connected, loaded, near
from headrace.cli.report import Report, console, good
from headrace.cli.words import counted
from headrace.core.errors import BadRequest, HeadraceError, NotFound
from headrace.define.definitions import StreamDefinition
from headrace.define.project import Project
from headrace.ingest.intake import Receipt
from headrace.ingest.records import Kind, read_records

_INTERRUPTED = fields_of("Interrupted", "the send was stopped before the end of the file")


@dataclass(slots=True)
class Sent:
    """What was acknowledged so far."""

    stream: str
    accepted: int = 0
    duplicates: int = 0
    conflicts: int = 0
    chunks: int = field(default=0)

    def add(self, receipt: Receipt) -> None:
        self.accepted += receipt.accepted
        self.duplicates += receipt.duplicates
        self.conflicts += receipt.conflicts
        self.chunks += 1

    @property
    def document(self) -> dict[str, Any]:
        names = ("stream", "accepted", "duplicates", "conflicts")
        return {name: getattr(self, name) for name in names}

    @property
    def words(self) -> str:
        parts = [counted(self.duplicates, "duplicate")]
        parts += [counted(self.conflicts, "conflict")] if self.conflicts else []
        taken = f"{counted(self.accepted, 'event')} accepted by {self.stream}"
        return f"{taken}, {' and '.join(parts)} among them"


def send(folder: Path, stream: str, file: str, kind: str | None, *, quiet: bool) -> Report:
    """Send a file, or stdin, to a stream."""
    project = loaded(folder)
    definition = _definition(project, stream)
    chosen = _kind(definition, file, kind)
    sent = Sent(definition.name)
    with _opened(file) as source, connected(project) as service:
        records = read_records(
            source,
            chosen,
            definition.schema,
            convert=definition.format == "json",
            record_bytes_max=project.settings.log.event_bytes_max,
        )
        try:
            _send_all(service, sent, source, records, quiet=quiet)
        except HeadraceError as error:
            if not sent.chunks:
                raise
            return _broken_off(sent, error.as_dict(), 1)
        except KeyboardInterrupt:
            return _broken_off(sent, _INTERRUPTED, 130)
    return Report(sent.document, [good(sent.words)])


def _send_all(
    service: Service, sent: Sent, source: BinaryIO, records: Iterator[list[bytes]], *, quiet: bool
) -> None:
    with _progress(source, quiet) as (bar, task):
        for chunk in records:
            sent.add(service.submit(sent.stream, chunk).result())
            rate = sent.accepted / max(bar.tasks[task].elapsed or 0.0, 1e-3)
            done = source.tell() if source.seekable() else None
            bar.update(task, completed=done, events=f"{sent.accepted:,}", rate=f"{rate:,.0f}/s")


@contextmanager
def _progress(source: BinaryIO, quiet: bool) -> Iterator[tuple[Progress, TaskID]]:
    # Only a person watches a bar: it goes to stderr, and nowhere if that is no terminal.
    screen = console(stderr=True)
    bar = Progress(
        TextColumn("{task.fields[events]} events"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        console=screen,
        transient=True,
        disable=quiet or not screen.is_terminal,
    )
    with bar:
        yield bar, bar.add_task("send", total=_size(source), events="0", rate="")


def _size(source: BinaryIO) -> int | None:
    """The bytes of a file; a pipe does not say."""
    if not source.seekable():
        return None
    here = source.tell()
    end = source.seek(0, 2)
    source.seek(here)
    return end


def _broken_off(sent: Sent, fields: Fields, exit_code: int) -> Report:
    """The error with the receipt of what came before it."""
    document = {**fields, "acknowledged": sent.document}
    acknowledged = Text(f"before that: {sent.words}", style="yellow")
    return Report(document, [*lines_of(fields), acknowledged], exit_code)


def _definition(project: Project, stream: str) -> StreamDefinition:
    found = {name.lower(): each for name, each in project.streams.items()}.get(stream.lower())
    if found is None:
        raise NotFound(f"there is no stream '{stream}'", hint=near(stream, [*project.streams]))
    return found


def _kind(definition: StreamDefinition, file: str, kind: str | None) -> Kind:
    by_stream = "csv" if definition.format == "csv" else "ndjson"
    by_ending = {".csv": "csv", ".ndjson": "ndjson", ".jsonl": "ndjson", ".json": "ndjson"}
    chosen = kind or by_ending.get(Path(file).suffix.lower(), by_stream)
    if definition.format == "csv" and chosen == "ndjson":
        raise BadRequest(
            f"stream '{definition.name}' takes CSV, not JSON",
            hint="send a .csv file, or say --format csv.",
            origin=definition.origin,
        )
    return cast(Kind, chosen)


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        source = open(file, "rb")  # noqa: SIM115
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {file}") from error
    except OSError as error:
        raise BadRequest(f"{file} cannot be read: {error.strerror}") from error
    with source:
        yield source
