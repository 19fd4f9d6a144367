"""An import that was killed, wherever it was, and begun again has taken each event once: also those
of a stream without an id, whatever else came into the log.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from headrace.ingest.file_cursors import read_cursors
from headrace.ingest.importer import import_folder
from tests.killed import run_module

from .bulk import import_into
from .conftest import Bench

pytestmark = pytest.mark.process

RECORDS = [b'{"event_id":%d,"user":"user-%d"}' % (n, n % 7) for n in range(120)]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """A file of lines, and a packed one."""
    found = [tmp_path / "a.ndjson", tmp_path / "b.ndjson.gz"]
    found[0].write_bytes(b"\n".join([*RECORDS[:80], b""]))
    found[1].write_bytes(gzip.compress(b"\n".join(RECORDS[80:])))
    return found


def killed(bench: Bench, files: list[Path], id: str, failpoint: str) -> None:
    """An import in a process that dies."""
    topic = str(bench.folder / "topic")
    run_module("tests.ingest.bulk", topic, id, *map(str, files), failpoint=failpoint)


# Each part has a block for both partitions, which are written at the same time: the first part has
# log.marked:1 and log.marked:2.
@pytest.mark.parametrize(("id", "point"), [
    ("", "import.staged:2"), ("", "import.begun:1"), ("", "log.marked:1"), ("", "log.written:3"),
    ("", "import.appended:3"), ("", "import.saved:2"), ("event_id", "log.marked:3"),
    ("event_id", "import.appended:2"),
])  # fmt: skip
def test_an_import_that_was_killed_and_begun_again_takes_each_event_once(
    bench: Bench, files: list[Path], point: str, id: str
) -> None:
    killed(bench, files, id, point)
    intake = bench.intake(key="user", id=id or None)
    assert len(bench.records()) < len(RECORDS)
    import_into(intake, files, part_bytes=1_000)
    assert [status for _, _, status in bench.logged()] == len(RECORDS) * [0]
    assert sorted(bench.records()) == sorted(RECORDS)
    assert not list(import_folder(intake.folder).iterdir())
    assert all(cursor.ended for cursor in read_cursors(intake.folder).files.values())
