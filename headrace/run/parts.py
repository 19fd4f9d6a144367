"""The parts of a project's state belong together: log, master, store and the progress of imports.

The log is the first to know of an event and the last to forget it, so nothing may be ahead of its
end, and nothing may be missing before its beginning. A state that was put together of copies of
different moments is refused before anything counts twice or not at all.
tests/run/test_parts.py puts such states together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace.core.errors import BadProject, Unavailable
from headrace.core.position import Position
from headrace.define.definitions import StreamDefinition
from headrace.define.layout import Layout
from headrace.ingest.file_cursors import cursors_path
from headrace.log.opening import find_reader, logs_in, open_reader
from headrace.log.protocol import LogReader
from headrace.master.version import MasterVersion, newest_version
from headrace.run.lock import holder
from headrace.serving.progress import read_offsets
from headrace.serving.sqlite_files import peek

_HINT = "restore a whole backup with `headrace restore`; copies of parts do not go together."


@dataclass(frozen=True, slots=True)
class Contradiction:
    """What two parts say differently of a partition."""

    stream: str
    partition: int
    offsets: tuple[int, int]
    problem: str


def topics_of(layout: Layout) -> dict[str, int]:
    """The streams that have a log, also those that are no longer defined, and their partitions."""
    return logs_in(layout.logs)


def is_written(layout: Layout) -> bool:
    """Whether a process writes the logs, and so publishes their ends."""
    return holder(layout) is not None


def check_parts(layout: Layout, streams: Mapping[str, StreamDefinition]) -> None:
    """Refuse a state whose parts are not of one moment; the caller holds the run lock."""
    for name, partitions in topics_of(layout).items():
        reader = open_reader(layout.log(name), written=False)
        for found in contradictions(layout, name, partitions, reader):
            raise BadProject(
                f"the parts of the state do not go together: {found.problem}",
                detail=f"stream '{name}', partition {found.partition}, "
                f"offsets [{found.offsets[0]}, {found.offsets[1]}).",
                hint=_HINT,
            )
    for name, definition in streams.items():
        _check_progress(layout, name, definition)


def _check_progress(layout: Layout, name: str, definition: StreamDefinition) -> None:
    """Without its progress a stream would import its files again; with an id it may."""
    if definition.source != "files" or definition.id is not None:
        return
    reader = find_reader(layout.log(name), written=False)
    path = cursors_path(layout.ingest, name)
    if reader and sum(reader.end().offsets) and not path.exists():
        raise BadProject(
            f"stream '{name}' has events, and the progress of its files is missing: {path}",
            detail="its files would be imported again, and each event would count twice.",
            hint=f"{_HINT} To import all files again, write {{}} into it.",
        )


def contradictions(
    layout: Layout, stream: str, partitions: int, reader: LogReader
) -> Iterator[Contradiction]:
    """What log, master and store say differently. Of a running project the log's beginning is read
    first and its end last: both move on, and never over what the others have.
    """
    first = reader.start()
    archived = _archived(layout.master(stream), partitions)
    counted = _counted(layout.store, stream, partitions)
    last = reader.end()
    places = zip(first.offsets, archived.offsets, counted.offsets, last.offsets, strict=True)
    for partition, (begins, after, taken, ends) in enumerate(places):
        if after < begins:
            told = "the log begins after the end of the master, and the records between are missing"
            yield Contradiction(stream, partition, (after, begins), told)
        for who, place in (("master", after), ("store", taken)):
            if ends < place:
                told = f"the {who} has records that the log does not have yet"
                yield Contradiction(stream, partition, (ends, place), told)


def _archived(path: Path, partitions: int) -> Position:
    version: MasterVersion | None = newest_version(path, partitions)
    return version.position if version else Position.start(partitions)


def _counted(path: Path, stream: str, partitions: int) -> Position:
    """What the store has counted of a stream by itself."""
    nothing = Position.start(partitions)
    if not path.exists():
        return nothing
    try:
        with peek(path) as db:
            offsets = read_offsets(db, stream)
    except Unavailable:
        return nothing  # a damaged store is told of by whoever opens it
    return Position(offsets) if len(offsets) == partitions else nothing
