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
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, cast

from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn
from rich.text import Text

from headrace.api.service import Service
from headrace.cli.failure import Fields, fields_of, lines_of
from headrace.cli.folder import loaded, named_job, near, opened
from headrace.cli.report import Report, console, good
from headrace.client.words import counted
from headrace.core.errors import BadRequest, HeadraceError, NotFound
from headrace.core.origin import Origin
from headrace.core.schema import Column, Schema, Type
from headrace.define.project import Project
from headrace.ingest.intake import Receipt
from headrace.ingest.records import RECORD_BYTES_MAX, Kind, read_records

_INTERRUPTED = fields_of("Interrupted", "the send was stopped before the end of the file")


@dataclass(frozen=True, slots=True)
class Taking:
    """What a stream takes; the columns are those that a CSV is read by."""

    name: str
    format: str
    schema: Schema
    record_bytes_max: int = RECORD_BYTES_MAX
    origin: Origin | None = None


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
    project = cache(lambda: loaded(folder))
    known = None if named_job() else _of_project(project(), stream)
    with _file(file) as source, opened(project) as service:
        taking = known or _of_job(service, stream)
        sent = Sent(taking.name)
        records = read_records(
            source,
            _kind(taking, file, kind),
            taking.schema,
            convert=taking.format == "json",
            record_bytes_max=taking.record_bytes_max,
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


def _of_project(project: Project, stream: str) -> Taking:
    found = {name.lower(): each for name, each in project.streams.items()}.get(stream.lower())
    if found is None:
        raise NotFound(f"there is no stream '{stream}'", hint=near(stream, [*project.streams]))
    bytes_max = project.settings.log.event_bytes_max
    return Taking(found.name, found.format, found.schema.stored, bytes_max, found.origin)


def _of_job(service: Service, stream: str) -> Taking:
    """By the job's catalog. It does not show a stream that one may send to and not read: then the
    columns of a CSV are not known, and the job says whether there is such a stream."""
    streams = service.observatory.catalog().streams
    found = next((one for one in streams if one.name.lower() == stream.lower()), None)
    if found is None or found.format is None:
        return Taking(stream, "json", Schema(()))
    stored = (c for c in found.columns if c.generated is None)
    columns = [Column(c.name, Type.parse(c.type), c.nullable) for c in stored if c.type]
    return Taking(found.name, found.format, Schema(tuple(columns)))


def _kind(taking: Taking, file: str, kind: str | None) -> Kind:
    by_stream = "csv" if taking.format == "csv" else "ndjson"
    by_ending = {".csv": "csv", ".ndjson": "ndjson", ".jsonl": "ndjson", ".json": "ndjson"}
    chosen = kind or by_ending.get(Path(file).suffix.lower(), by_stream)
    if taking.format == "csv" and chosen == "ndjson":
        raise BadRequest(
            f"stream '{taking.name}' takes CSV, not JSON",
            hint="send a .csv file, or say --format csv.",
            origin=taking.origin,
        )
    if chosen == "csv" and not taking.schema.columns:
        raise BadRequest(
            f"the job shows you no stream '{taking.name}' whose columns a CSV could have",
            hint="a CSV is sent by one who may read the stream; JSON lines need no columns.",
        )
    return cast(Kind, chosen)


@contextmanager
def _file(path: str) -> Iterator[BinaryIO]:
    if path == "-":
        yield sys.stdin.buffer
        return
    try:
        source = open(path, "rb")  # noqa: SIM115
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {path}") from error
    except OSError as error:
        raise BadRequest(f"{path} cannot be read: {error.strerror}") from error
    with source:
        yield source
