"""Several processes pack what one packs, in the same order, and an end of one is an error."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from headrace.core.errors import Unavailable
from headrace.ingest.packer_process import PackerProcess
from headrace.ingest.packing import PackSpec

from .bulk import import_into
from .conftest import Bench, stream

pytestmark = pytest.mark.process

LINES = [b'{"event_id":%d,"user":"u%d"}\n' % (n % 300, n % 300 % 7) for n in range(400)]


def test_several_processes_give_the_log_that_one_gives(tmp_path: Path) -> None:
    files = [tmp_path / "a.ndjson", tmp_path / "b.ndjson.gz", tmp_path / "c.ndjson"]
    files[0].write_bytes(b"".join(LINES[:150]))
    files[1].write_bytes(gzip.compress(b"".join(LINES[150:300])))
    files[2].write_bytes(b"".join(LINES[300:]))
    logs = []
    for processes in (1, 2):
        bench = Bench(tmp_path / str(processes))
        intake = bench.intake(key="user", id="event_id")
        import_into(intake, files, part_bytes=500, processes=processes)
        logs.append(bench.logged())
        bench.close()
    assert logs[0] == logs[1]
    assert sum(status for _, _, status in logs[0]) == 100  # duplicates


def test_the_end_of_a_process_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    packer = PackerProcess(PackSpec(stream(), 2, 1_000, tmp_path, None))
    packer._process.kill()
    with pytest.raises(Unavailable, match="a process of the import ended with exit code -9"):
        next(packer.parts())
    packer.stop()
