"""A consistent copy of a topic, made while it is written.

The copy ends at the durable marks. Segments only grow and are removed oldest first, so what a
snapshot names stays as it is, unless retention removes it: then its events are archived, and the
copy begins after them. If all is removed that a snapshot names, there is no copy of it any more.
tests/log/test_copy.py copies a topic while it is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headrace.core.errors import NotFound, Unavailable
from headrace.core.files import copy_file, sync
from headrace.log.embedded.description import read_description
from headrace.log.embedded.mark import DurableMark, MarkOf, mark_path, published_mark
from headrace.log.embedded.segment import Segment, list_segments


@dataclass(frozen=True, slots=True)
class LogSnapshot:
    """The published end of each partition, and the segments up to it."""

    path: Path
    parts: tuple[tuple[DurableMark, tuple[Segment, ...]], ...]


def snapshot_of(path: Path, mark_of: MarkOf = published_mark) -> LogSnapshot:
    """A snapshot of what a topic has published; this copies nothing."""
    partitions = read_description(path)
    if partitions is None:
        raise NotFound(f"there is no log at {path}")
    return LogSnapshot(path, tuple(_part(path / str(n), mark_of) for n in range(partitions)))


def _part(folder: Path, mark_of: MarkOf) -> tuple[DurableMark, tuple[Segment, ...]]:
    mark = mark_of(folder)
    return mark, tuple(s for s in list_segments(folder) if s.first_offset <= mark.segment)


def copy_segments(log: LogSnapshot, target: Path) -> None:
    """Copy what a snapshot names."""
    for number, (mark, segments) in enumerate(log.parts):
        folder = target / str(number)
        folder.mkdir(parents=True)
        for segment in segments:
            length = mark.length if segment.first_offset == mark.segment else None
            try:
                copy_file(segment.path, folder / segment.path.name, length)
            except FileNotFoundError as error:
                if segment.first_offset == mark.segment:
                    raise Unavailable(
                        f"retention removed the last segment of the log at {log.path} while it "
                        "was being copied",
                        hint="try again, or raise log.retention.",
                    ) from error
                # Retention removes the oldest first, so all before it are gone or going too.
                for copied in list_segments(folder):
                    copied.path.unlink()
        mark_path(folder).write_bytes(mark.encoded())
        sync(mark_path(folder))
    copy_file(log.path / "topic.json", target / "topic.json")
