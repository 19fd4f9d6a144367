"""Whether the parts of a project's state are consistent: log, master, store and import cursors.

Events are written to the log first and removed from it last. So neither master nor store may be
ahead of the log's end, and the master must reach the log's start. A state that was assembled from
copies of different times is rejected before events are counted twice or lost.
tests/run/test_state_check.py assembles such states.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace.core.address import StoreAddress
from headrace.core.errors import BadProject, Unavailable
from headrace.core.position import Position
from headrace.define.definitions import StreamDefinition
from headrace.define.layout import Layout
from headrace.ingest.file_cursors import cursors_path, former_path, read_cursors
from headrace.log.opening import find_reader, logs_in, open_reader
from headrace.log.protocol import LogReader
from headrace.master.version import MasterVersion, newest_version
from headrace.run.lock import holder
from headrace.serving.opening import read_store, store_exists
from headrace.serving.progress import read_offsets

_HINT = "restore a complete backup with `headrace restore`; do not mix parts of several copies."


@dataclass(frozen=True, slots=True)
class Inconsistency:
    """Offsets of a partition about which two parts disagree."""

    stream: str
    partition: int
    offsets: tuple[int, int]
    problem: str


def has_writer(layout: Layout) -> bool:
    """Whether a running process writes the logs and publishes their ends."""
    return holder(layout) is not None


def check_state(layout: Layout, streams: Mapping[str, StreamDefinition]) -> None:
    """Reject a state whose parts are inconsistent; the caller holds the run lock."""
    for name, partitions in logs_in(layout.logs).items():
        reader = open_reader(layout.log(name), written=False)
        for found in inconsistencies(layout, name, partitions, reader):
            raise BadProject(
                f"the state is inconsistent: {found.problem}",
                detail=f"stream '{name}', partition {found.partition}, "
                f"offsets [{found.offsets[0]}, {found.offsets[1]}).",
                hint=_HINT,
            )
    for name, definition in streams.items():
        _check_cursors(layout, name, definition)


def _check_cursors(layout: Layout, name: str, definition: StreamDefinition) -> None:
    """Cursors of another time would skip lines, or import them again; without cursors a source of
    files imports them again, which is safe only if it has an id.
    """
    path = cursors_path(layout.log(name).folder)
    reader = find_reader(layout.log(name), written=False)
    if reader is None or (definition.source != "files" and not path.exists()):
        return
    log, end = layout.log(name).folder, reader.end()
    saved = read_cursors(log).end
    if saved is not None and not Position.parse(saved) <= end:
        raise BadProject(
            f"the file cursors of stream '{name}' are newer than its log: {path}",
            detail=f"they were saved when the log ended at {saved}; it ends at {end}, so lines of "
            "its files would be lost.",
            hint=_HINT,
        )
    found = path.exists() or former_path(layout.former_cursors, name).exists()
    if definition.source == "files" and definition.id is None and any(end.offsets) and not found:
        raise BadProject(
            f"stream '{name}' has events, but its file cursors are missing: {path}",
            detail="its files would be imported again, and each event would be counted twice.",
            hint=f"{_HINT} To import all files again, write {{}} into that file.",
        )


def inconsistencies(
    layout: Layout, stream: str, partitions: int, reader: LogReader
) -> Iterator[Inconsistency]:
    """Where log, master and store disagree. The log's start is read first and its end last, because
    both advance while a project runs.
    """
    first = reader.start()
    archived = _archived(layout.master(stream), partitions)
    committed = _committed(layout.store, stream, partitions)
    last = reader.end()
    offsets = zip(first.offsets, archived.offsets, committed.offsets, last.offsets, strict=True)
    for partition, (start, in_master, in_store, end) in enumerate(offsets):
        if in_master < start:
            problem = "the log starts after the end of the master; the records between are missing"
            yield Inconsistency(stream, partition, (in_master, start), problem)
        for part, offset in (("master", in_master), ("store", in_store)):
            if end < offset:
                problem = f"the {part} has records that are not in the log"
                yield Inconsistency(stream, partition, (end, offset), problem)


def _archived(path: Path, partitions: int) -> Position:
    version: MasterVersion | None = newest_version(path, partitions)
    return version.position if version else Position.start(partitions)


def _committed(address: StoreAddress, stream: str, partitions: int) -> Position:
    """The position that the store has committed."""
    start = Position.start(partitions)
    if not store_exists(address):
        return start
    try:
        with read_store(address) as db:
            offsets = read_offsets(db, stream)
    except Unavailable:
        return start  # whoever opens a damaged store reports it
    return Position(offsets) if len(offsets) == partitions else start
