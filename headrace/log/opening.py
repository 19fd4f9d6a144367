"""Opens a log by its address: the one place that knows which implementations there are."""

from __future__ import annotations

from pathlib import Path

from headrace.core.address import FILE, LogAddress
from headrace.core.errors import NotFound, Unsupported
from headrace.core.time import Clock, now_us
from headrace.log.embedded.copy import LogSnapshot as LogSnapshot
from headrace.log.embedded.copy import copy_segments, snapshot_of
from headrace.log.embedded.description import read_description
from headrace.log.embedded.mark import published_mark
from headrace.log.embedded.reader import EmbeddedReader
from headrace.log.embedded.recover import recovered_mark
from headrace.log.embedded.writer import EmbeddedWriter
from headrace.log.protocol import LogReader, LogWriter


def open_reader(address: LogAddress, *, written: bool = True) -> LogReader:
    """A log to read from; NotFound if it was never written. Without a process that writes it, its
    end is taken from its records: after a power cut, what a process published may be missing.
    """
    _check_kind(address)
    return EmbeddedReader(address.folder, written=written)


def find_reader(address: LogAddress, *, written: bool = True) -> LogReader | None:
    """The same; None if it was never written."""
    try:
        return open_reader(address, written=written)
    except NotFound:
        return None


def open_writer(
    address: LogAddress, partitions: int, *, segment_bytes_max: int, clock: Clock = now_us
) -> LogWriter:
    """Become the writer of a log, which is made if it is not there."""
    _check_kind(address)
    return EmbeddedWriter.open(
        address.folder, partitions, segment_bytes_max=segment_bytes_max, clock=clock
    )


def logs_in(folder: Path) -> dict[str, int]:
    """The embedded logs in a folder, by the names of their streams, with their partitions."""
    folders = sorted(path for path in folder.glob("*") if path.is_dir())
    found = ((path.name, read_description(path)) for path in folders)
    return {name: partitions for name, partitions in found if partitions is not None}


def snapshot(address: LogAddress, *, written: bool) -> LogSnapshot:
    """A snapshot of what a log has published, for `copy_log`; this copies nothing."""
    _check_kind(address)
    return snapshot_of(address.folder, published_mark if written else recovered_mark)


def copy_log(log: LogSnapshot, target: LogAddress) -> None:
    """Copy what a snapshot names."""
    copy_segments(log, target.folder)


def _check_kind(address: LogAddress) -> None:
    if address.kind != FILE:
        raise Unsupported(f"the log kind '{address.kind}' is not supported", hint=f"use '{FILE}'.")
