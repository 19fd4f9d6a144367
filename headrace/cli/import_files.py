"""`headrace import`: the events of files, read on all cores, each once.

The files are packed into parts beside the log of the stream, and the process that writes the log
takes them in order: this one, or the running project. Whatever ends the command, the next one
resumes after what was taken; a file that was taken to its end is skipped. So the summary of a
command is of what this command has taken. tests/cli/test_import_files.py reads it.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from rich.progress import TimeRemainingColumn
from rich.text import Text

from headrace.api.service import Service
from headrace.cli.failure import Fields, fields_of, lines_of
from headrace.cli.folder import load, name_hint, named_job, open_project_or_job
from headrace.cli.report import Report, dim, good
from headrace.cli.transfer_bar import transfer_bar
from headrace.client.formats import plural
from headrace.core.address import LogAddress
from headrace.core.errors import (
    AlreadyRunning,
    BadRequest,
    HeadraceError,
    NotFound,
    Overloaded,
    Unsupported,
)
from headrace.core.files import make_folder
from headrace.define.definitions import StreamDefinition
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.ingest.id_index import hash_key
from headrace.ingest.import_plan import FilePlan, ImportFile, plan_files, tasks_of
from headrace.ingest.importer import import_folder
from headrace.ingest.intake import Receipt
from headrace.ingest.packers import packed_parts
from headrace.ingest.packing import PART_BYTES, PackSpec, StagedPart
from headrace.ingest.records import Kind, file_kind
from headrace.log.opening import open_reader

_INTERRUPTED = fields_of("Interrupted", "the import was interrupted before the end of the files")
_SKIPPED_SHOWN = 5
_OVERLOADED_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """`kind` is the format of all files; without it each has that of its name or the stream."""

    kind: str | None = None
    again: bool = False
    processes: int | None = None
    quiet: bool = False
    part_bytes: int = PART_BYTES


@dataclass(slots=True)
class ImportProgress:
    """What was taken so far."""

    stream: str
    files: int = 0
    skipped: list[str] = field(default_factory=list)
    accepted: int = 0
    duplicates: int = 0
    conflicts: int = 0
    unread: int = 0
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, part: StagedPart, receipt: Receipt) -> None:
        self.accepted += receipt.accepted
        self.duplicates += receipt.duplicates
        self.conflicts += receipt.conflicts
        self.unread += part.unread
        self.problems += part.problems

    @property
    def document(self) -> dict[str, Any]:
        names = ("stream", "files", "skipped", "accepted", "duplicates", "conflicts", "unread")
        return {name: getattr(self, name) for name in names} | {"seconds": round(self.seconds, 3)}

    @property
    def words(self) -> str:
        parts = [plural(self.duplicates, "duplicate")]
        parts += [plural(self.conflicts, "conflict")] if self.conflicts else []
        parts += [plural(self.unread, "unreadable record")] if self.unread else []
        taken = f"{plural(self.accepted, 'event')} of {plural(self.files, 'file')}"
        rate = f"{self.accepted / max(self.seconds, 1e-3):,.0f} events/s"
        return f"{taken} imported into {self.stream} ({rate}), {' and '.join(parts)} among them"


def import_files(
    folder: Path, stream: str, files: Sequence[Path], options: ImportOptions
) -> Report:
    """Import files that were not imported or sent before; all of them with `again`."""
    if job := named_job():
        raise Unsupported(
            f"files cannot be imported into job '{job}'",
            hint="use `headrace send`, or import into the folder of a project.",
        )
    project = load(folder)
    definition = _stream(project, stream)
    named = [_import_file(project, definition, path, options.kind) for path in files]
    layout = Layout.of(project)
    layout.make_state()  # what is staged is as private as the log
    log = layout.log(definition.name)
    with open_project_or_job(lambda: project) as service:
        # The stream is opened, and what an import left unfinished is taken.
        service.submit(definition.name, []).result()
        with _staging(log, definition.name):
            return _import(service, _spec(project, definition, log, options), named, log, options)


def _import(
    service: Service,
    spec: PackSpec,
    files: Sequence[ImportFile],
    log: LogAddress,
    options: ImportOptions,
) -> Report:
    plans = plan_files({file.name: file for file in files}.values(), log, again=options.again)
    progress = ImportProgress(spec.definition.name)
    progress.files = sum(1 for plan in plans if plan.start)
    progress.skipped = [plan.file.name for plan in plans if not plan.start]
    began = time.perf_counter()
    try:
        for part, receipt in _taken(service, spec, plans, options):
            progress.add(part, receipt)
    except HeadraceError as error:
        if not progress.accepted:
            raise
        return _broken_off(progress, error.as_dict(), 1)
    except KeyboardInterrupt:
        return _broken_off(progress, _INTERRUPTED, 130)
    progress.seconds = time.perf_counter() - began
    return Report(progress.document, [*_lines(progress, spec.definition)])


def _taken(
    service: Service, spec: PackSpec, plans: Sequence[FilePlan], options: ImportOptions
) -> Iterator[tuple[StagedPart, Receipt]]:
    size = sum(plan.bytes for plan in plans)
    cores = options.processes or len(os.sched_getaffinity(0))
    processes = min(cores, 1 + size // spec.part_bytes)
    accepted = 0
    with transfer_bar("import", size, options.quiet, TimeRemainingColumn()) as (bar, task):
        for part in packed_parts(spec, tasks_of(plans, spec.part_bytes), processes):
            receipt = _receipt(service, spec.definition.name, part.name)
            yield part, receipt
            accepted += receipt.accepted
            rate = accepted / max(bar.tasks[task].elapsed or 0.0, 1e-3)
            bar.update(task, advance=part.read, events=f"{accepted:,}", rate=f"{rate:,.0f}/s")


def _receipt(service: Service, stream: str, part: str) -> Receipt:
    """Take a part, and wait as long as speed is too far behind: an import has time."""
    while True:
        try:
            return service.import_part(stream, part)
        except Overloaded:
            time.sleep(_OVERLOADED_S)


@contextmanager
def _staging(log: LogAddress, stream: str) -> Iterator[None]:
    """The folder of parts, for one import at a time; parts of a killed one are removed."""
    folder = import_folder(log.folder)
    make_folder(folder)
    handle = os.open(folder, os.O_RDONLY)
    try:
        _lock(handle, stream)
        _remove_parts(folder)
        try:
            yield
        finally:
            _remove_parts(folder)
    finally:
        os.close(handle)


def _lock(handle: int, stream: str) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise AlreadyRunning(
            f"another import into stream '{stream}' is running",
            hint="give all files to one command, or wait for the other.",
        ) from error


def _remove_parts(folder: Path) -> None:
    for left in folder.glob("*.part"):
        left.unlink(missing_ok=True)


def _spec(
    project: Project, definition: StreamDefinition, log: LogAddress, options: ImportOptions
) -> PackSpec:
    return PackSpec(
        definition,
        len(open_reader(log).end().offsets),
        project.settings.log.event_bytes_max,
        import_folder(log.folder),
        hash_key(log.folder / "ids") if definition.id is not None else None,
        options.part_bytes,
    )


def _stream(project: Project, stream: str) -> StreamDefinition:
    found = {name.lower(): each for name, each in project.streams.items()}.get(stream.lower())
    if found is None:
        raise NotFound(f"there is no stream '{stream}'", hint=name_hint(stream, [*project.streams]))
    return found


def _import_file(
    project: Project, definition: StreamDefinition, path: Path, kind: str | None
) -> ImportFile:
    """A file that can be read, under the name that the connector of files would give it."""
    try:
        with path.open("rb"):
            whole = path.resolve()
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {path}") from error
    except OSError as error:
        raise BadRequest(f"{path} cannot be read: {error.strerror}") from error
    chosen = cast(Kind, kind) if kind else file_kind(path.name, definition.format)
    if definition.format == "csv" and chosen == "ndjson":
        raise BadRequest(
            f"stream '{definition.name}' requires CSV, not JSON",
            hint="import .csv files, or use --format csv.",
            origin=definition.origin,
        )
    folder = project.folder.resolve()
    name = whole.relative_to(folder) if whole.is_relative_to(folder) else whole
    return ImportFile(str(name), whole, chosen)


def _broken_off(progress: ImportProgress, fields: Fields, exit_code: int) -> Report:
    """The error with what was taken before it."""
    document = {**fields, "acknowledged": progress.document}
    before = (
        f"acknowledged before: {plural(progress.accepted, 'event')}; run the same command again"
    )
    return Report(document, [*lines_of(fields), Text(before, style="yellow")], exit_code)


def _lines(progress: ImportProgress, definition: StreamDefinition) -> Iterator[Text]:
    if progress.files:
        yield good(progress.words)
    for problem in progress.problems[:_SKIPPED_SHOWN]:
        yield Text(f"  {problem}", style="yellow")
    for name in progress.skipped[:_SKIPPED_SHOWN]:
        yield Text(f"skipped: {name} was imported or sent before", style="yellow")
    if len(progress.skipped) > _SKIPPED_SHOWN:
        more = len(progress.skipped) - _SKIPPED_SHOWN
        yield Text(f"skipped: {plural(more, 'file')} more", style="yellow")
    if progress.skipped:
        again = "are duplicates" if definition.id else "count again"
        yield dim(f"with --again they are read, and their events {again}")
