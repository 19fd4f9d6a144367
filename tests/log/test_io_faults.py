"""F5 and F7: the n-th I/O fails, for every n; the disk is full, then freed.

Whatever was acknowledged is readable afterwards, in the order of its offsets; what was refused is
not there; and when the disk works again, the log does so by itself.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from headrace.core.errors import DiskFull, HeadraceError, Unavailable
from headrace.core.position import Interval
from headrace.log.embedded.files import Files
from headrace.log.embedded.reader import EmbeddedReader
from headrace.log.embedded.writer import EmbeddedWriter

from .conftest import OpenTopic, put, read_all
from .faulty_files import FaultyFiles, NotingFiles

FAULTS = ["eio", "enospc", "short", "late"]
APPENDS = 8


def story(path: Path, files: FaultyFiles) -> dict[int, bytes]:
    """Open, append with seals between, close; returns what was acknowledged."""
    acknowledged: dict[int, bytes] = {}
    try:
        topic = EmbeddedWriter.open(path, 1, segment_bytes_max=4096, files=files)
    except HeadraceError:
        return acknowledged
    for i in range(APPENDS):
        record = b"%02d" % i + bytes(1500)
        try:
            acknowledged[put(topic, record).lower] = record
        except Unavailable:
            continue
    topic.close()
    return acknowledged


def check(path: Path, acknowledged: dict[int, bytes]) -> None:
    """The log holds exactly what was acknowledged, and takes more."""
    expected = [acknowledged[offset] for offset in range(len(acknowledged))]
    topic = EmbeddedWriter.open(path, 1, segment_bytes_max=4096)
    assert read_all(path) == expected
    assert put(topic, b"afterwards").lower == len(expected)
    topic.close()
    assert read_all(path) == [*expected, b"afterwards"]


@pytest.fixture
def memory_path() -> Iterator[Path]:
    """A folder in memory, if there is such: these faults are made up, and real syncs are slow."""
    shared = Path("/dev/shm")
    with TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        yield Path(folder)


def changes_of_the_story(path: Path) -> int:
    files = FaultyFiles("eio", lambda n: False)
    assert len(story(path / "counted", files)) == APPENDS
    return files.count


@pytest.mark.parametrize("fault", FAULTS)
def test_when_the_nth_change_fails_the_acknowledged_is_all_there(
    memory_path: Path, fault: str
) -> None:
    total = changes_of_the_story(memory_path)
    for n in range(1, total + 1):
        path = memory_path / f"{fault}{n}"
        acknowledged = story(path, FaultyFiles(fault, lambda count, n=n: count == n))
        check(path, acknowledged)
        assert not acknowledged or len(acknowledged) >= APPENDS - 1


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("every", [2, 3, 5])
def test_when_every_nth_change_fails_the_acknowledged_is_all_there(
    memory_path: Path, fault: str, every: int
) -> None:
    # The log is made on a sound disk; a repair may then fail too, and again.
    EmbeddedWriter.open(memory_path / "log", 1, segment_bytes_max=4096).close()
    for phase in range(every):
        path = memory_path / "log"
        files = FaultyFiles(fault, lambda count, phase=phase: count > 12 and count % every == phase)
        before = dict(enumerate(read_all(path)))
        acknowledged = before | story(path, files)
        EmbeddedWriter.open(path, 1, segment_bytes_max=4096).close()
        found = read_all(path)
        # If the disk failed to the end, the last refused event may be there still, but only once.
        assert len(found) <= len(acknowledged) + 1
        check(path, dict(enumerate(found)) | acknowledged)


class FullDisk(Files):
    """Has no room while `full`."""

    full = False

    def pwrite(self, fd: int, data: bytes | memoryview, at: int) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().pwrite(fd, data, at)


def test_a_full_disk_is_refused_and_the_log_goes_on_when_it_is_freed(
    open_topic: OpenTopic,
) -> None:
    disk = FullDisk()
    topic = open_topic(files=disk)
    put(topic, b"before")
    disk.full = True
    for _ in range(3):
        with pytest.raises(DiskFull) as caught:
            put(topic, b"refused")
    assert caught.value.message == (
        f"the disk of the log at {topic.path / '0'} is full; nothing was acknowledged"
    )
    assert read_all(topic.path) == [b"before"]
    disk.full = False
    assert put(topic, b"after") == Interval(1, 2)
    assert read_all(topic.path) == [b"before", b"after"]


class SyncFails(Files):
    """Its next fdatasync fails once: the kernel has then forgotten which pages were not written."""

    fails = False

    def fdatasync(self, fd: int) -> None:
        if self.fails:
            self.fails = False
            raise OSError(errno.EIO, "Input/output error")
        super().fdatasync(fd)


def test_after_a_failed_sync_the_unconfirmed_is_cut_off(open_topic: OpenTopic) -> None:
    disk = SyncFails()
    topic = open_topic(files=disk)
    put(topic, b"before")
    size = (topic.path / "0" / f"{0:020d}.seg").stat().st_size
    disk.fails = True
    with pytest.raises(Unavailable) as caught:
        put(topic, b"refused")
    assert type(caught.value) is Unavailable
    assert caught.value.message == (
        f"the log at {topic.path / '0'} cannot be written; nothing was acknowledged"
    )
    assert (topic.path / "0" / f"{0:020d}.seg").stat().st_size == size
    assert put(topic, b"after") == Interval(1, 2)
    assert EmbeddedReader(topic.path).end().offsets == (2,)


def test_a_record_that_cannot_be_written_does_not_hang_its_future(open_topic: OpenTopic) -> None:
    topic = open_topic()
    with pytest.raises(TypeError):
        topic.append(0, ["text, not bytes"], bytes(1)).result(timeout=20)  # type: ignore[list-item]
    assert put(topic, b"bytes") == Interval(0, 1)


def test_a_block_is_synced_before_its_mark_is_written(tmp_path: Path) -> None:
    """A kill cannot show this order, because the kernel keeps what was written; a power loss can
    leave the mark without its block.
    """
    files = NotingFiles()
    topic = EmbeddedWriter.open(tmp_path / "log", 1, segment_bytes_max=1 << 20, files=files)
    put(topic, b"one")
    files.done.clear()
    put(topic, b"two")
    [segment, synced, mark] = files.done
    topic.close()
    assert (segment[0], synced, mark[0]) == ("write", ("sync", segment[1]), "write")
    assert mark[1] != segment[1]


def test_the_mark_is_synced_when_a_segment_is_begun(tmp_path: Path) -> None:
    """An older mark that a power cut brings back never names a segment that retention removes."""
    files = NotingFiles()
    topic = EmbeddedWriter.open(tmp_path / "log", 1, segment_bytes_max=1, files=files)
    put(topic, b"one")
    files.done.clear()
    put(topic, b"two")
    topic.close()
    first = f"{1:020d}.seg"
    begun = files.done[: files.done.index(("write", first))]
    assert begun.index(("write", "durable")) < begun.index(("sync", "durable"))
