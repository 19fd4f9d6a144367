"""`headrace send`: send the events of a file, acknowledged chunk by chunk.

One chunk is in flight at a time, so the acknowledged events are always a prefix of the file. If a
send fails midway, the receipt of that prefix is shown with the error, and the exit code is 1.
Sending the file again is safe for a stream with an id: events accepted before are duplicates. For a
stream of the project without one, a file that was acknowledged to its end is skipped.
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

from rich.text import Text

from headrace.api.resources.catalog import CatalogRequest
from headrace.api.service import Service
from headrace.cli.failure import Fields, fields_of, lines_of
from headrace.cli.folder import load, name_hint, named_job, open_project_or_job
from headrace.cli.report import Report, dim, good
from headrace.cli.transfer_bar import transfer_bar
from headrace.client.formats import plural, timestamp_to_second
from headrace.core.address import LogAddress
from headrace.core.errors import BadRequest, HeadraceError, NotFound
from headrace.core.origin import Origin
from headrace.core.schema import Column, Schema, Type
from headrace.core.time import iso
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.ingest.intake import Receipt
from headrace.ingest.records import RECORD_BYTES_MAX, Kind, read_records
from headrace.ingest.sent_files import SentFile

_INTERRUPTED = fields_of("Interrupted", "sending was interrupted before the end of the file")


@dataclass(frozen=True, slots=True)
class SendTarget:
    """The stream to send to; the columns are for reading a CSV."""

    name: str
    format: str
    schema: Schema
    record_bytes_max: int = RECORD_BYTES_MAX
    origin: Origin | None = None
    log: LogAddress | None = None  # of a stream of the project without an id


@dataclass(slots=True)
class SendProgress:
    """The events acknowledged so far."""

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
        parts = [plural(self.duplicates, "duplicate")]
        parts += [plural(self.conflicts, "conflict")] if self.conflicts else []
        taken = f"{plural(self.accepted, 'event')} accepted by {self.stream}"
        return f"{taken}, {' and '.join(parts)} among them"


def send(
    folder: Path, stream: str, file: str, kind: str | None, *, again: bool, quiet: bool
) -> Report:
    """Send a file, or stdin, to a stream; one that was sent before only with `again`."""
    project = cache(lambda: load(folder))
    known = None if named_job() else _project_target(project(), stream)
    with _file(file) as source, open_project_or_job(project) as service:
        target = known or _job_target(service, stream)
        progress = SendProgress(target.name)
        whole = file != "-" and source.seekable()
        sent = SentFile.of(target.log, source) if target.log and whole else None
        if sent and not again and (at_us := sent.at_us):
            return _skipped(progress, file, iso(at_us))
        records = read_records(
            source,
            _kind(target, file, kind),
            target.schema,
            convert=target.format == "json",
            record_bytes_max=target.record_bytes_max,
        )
        try:
            _send_all(service, progress, source, records, quiet=quiet)
        except HeadraceError as error:
            if not progress.chunks:
                raise
            return _broken_off(progress, error.as_dict(), 1)
        except KeyboardInterrupt:
            return _broken_off(progress, _INTERRUPTED, 130)
        if sent and progress.accepted:
            sent.remember()
    return Report(progress.document, [good(progress.words)])


def _skipped(progress: SendProgress, file: str, at: str) -> Report:
    """Nothing is sent: without an id, the events would count twice."""
    line = f"skipped: {file} was sent to {progress.stream} at {timestamp_to_second(at)} UTC"
    hint = f"{progress.stream} has no id, so its events would count again; --again sends them."
    return Report({**progress.document, "sent_at": at}, [Text(line, style="yellow"), dim(hint)])


def _send_all(
    service: Service,
    progress: SendProgress,
    source: BinaryIO,
    records: Iterator[list[bytes]],
    *,
    quiet: bool,
) -> None:
    with transfer_bar("send", _size(source), quiet) as (bar, task):
        for chunk in records:
            progress.add(service.submit(progress.stream, chunk).result())
            rate = progress.accepted / max(bar.tasks[task].elapsed or 0.0, 1e-3)
            done = source.tell() if source.seekable() else None
            bar.update(task, completed=done, events=f"{progress.accepted:,}", rate=f"{rate:,.0f}/s")


def _size(source: BinaryIO) -> int | None:
    """The size of a file in bytes; None for a pipe."""
    if not source.seekable():
        return None
    here = source.tell()
    end = source.seek(0, 2)
    source.seek(here)
    return end


def _broken_off(progress: SendProgress, fields: Fields, exit_code: int) -> Report:
    """The error with the receipt of the events before it."""
    document = {**fields, "acknowledged": progress.document}
    acknowledged = Text(f"acknowledged before: {progress.words}", style="yellow")
    return Report(document, [*lines_of(fields), acknowledged], exit_code)


def _project_target(project: Project, stream: str) -> SendTarget:
    found = {name.lower(): each for name, each in project.streams.items()}.get(stream.lower())
    if found is None:
        raise NotFound(f"there is no stream '{stream}'", hint=name_hint(stream, [*project.streams]))
    bytes_max = project.settings.log.event_bytes_max
    log = None if found.id else Layout.of(project).log(found.name)
    return SendTarget(found.name, found.format, found.schema.stored, bytes_max, found.origin, log)


def _job_target(service: Service, stream: str) -> SendTarget:
    """By the job's catalog. It does not list a stream that the caller may send to but not read:
    then the columns of a CSV are not known, and the job itself checks the name of the stream.
    """
    streams = service.ask(CatalogRequest()).streams
    found = next((one for one in streams if one.name.lower() == stream.lower()), None)
    if found is None or found.format is None:
        return SendTarget(stream, "json", Schema(()))
    stored = (c for c in found.columns if c.generated is None)
    columns = [Column(c.name, Type.parse(c.type), c.nullable) for c in stored if c.type]
    return SendTarget(found.name, found.format, Schema(tuple(columns)))


def _kind(target: SendTarget, file: str, kind: str | None) -> Kind:
    by_stream = "csv" if target.format == "csv" else "ndjson"
    by_ending = {".csv": "csv", ".ndjson": "ndjson", ".jsonl": "ndjson", ".json": "ndjson"}
    chosen = kind or by_ending.get(Path(file).suffix.lower(), by_stream)
    if target.format == "csv" and chosen == "ndjson":
        raise BadRequest(
            f"stream '{target.name}' requires CSV, not JSON",
            hint="send a .csv file, or use --format csv.",
            origin=target.origin,
        )
    if chosen == "csv" and not target.schema.columns:
        raise BadRequest(
            f"CSV cannot be sent to stream '{target.name}': its columns are not known",
            hint="sending CSV requires permission to read the stream; JSON lines do not.",
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
