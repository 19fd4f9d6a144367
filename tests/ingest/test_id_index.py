"""The index against a dict: whatever was added is found, with its body, and nothing else."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from headrace.core.position import Position
from headrace.ingest.hashing import Hashes
from headrace.ingest.id_index import MERGED, IdIndex
from headrace.ingest.id_run import open_run, write_run

END = Position((1_000_000,))


def numbers(seed: int, many: int) -> Hashes:
    return np.random.default_rng(seed).integers(0, 1 << 64, many, dtype=np.uint64)


def opened(folder: Path, field: str = "event_id", end: Position = END) -> IdIndex:
    return IdIndex(folder / "ids", field, end)


@pytest.mark.parametrize("many", [0, 1, 5, 1_000, 100_000])
def test_a_run_finds_what_is_in_it_and_nothing_else(tmp_path: Path, many: int) -> None:
    ids, bodies = numbers(1, many), numbers(2, many)
    run, crc = write_run(tmp_path / "run", [(ids, bodies)])
    for few in (ids[:3], ids):
        places, found = run.look_up(few)
        assert np.array_equal(places, np.arange(len(few)))
        assert np.array_equal(found, bodies[: len(few)])
    for other in (numbers(3, 3), numbers(3, 10_000)):
        assert len(run.look_up(other)[0]) == 0
    again = open_run(tmp_path / "run", many, crc)
    assert again is not None
    assert np.array_equal(again.ids, np.sort(ids))


def test_the_filter_lets_few_through(tmp_path: Path) -> None:
    run, _ = write_run(tmp_path / "run", [(numbers(1, 50_000), numbers(2, 50_000))])
    assert len(run._maybe_many(numbers(3, 100_000))) < 3_000
    few = sum(len(run._maybe_few(numbers(seed, 10))) for seed in range(3, 303))
    assert few < 90


def test_few_and_many_ids_pass_the_filter_alike(tmp_path: Path) -> None:
    run, _ = write_run(tmp_path / "run", [(numbers(1, 1_000), numbers(2, 1_000))])
    asked = numbers(3, 5_000)
    few = np.concatenate([run._maybe_few(asked[n : n + 10]) + n for n in range(0, 5_000, 10)])
    assert np.array_equal(few, run._maybe_many(asked))


def test_every_id_of_many_runs_is_found_while_they_are_merged(tmp_path: Path) -> None:
    index, known = opened(tmp_path), dict[int, int]()
    for step in range(3 * MERGED**2):
        ids, bodies = numbers(step, 50), numbers(1_000 + step, 50)
        index.add(ids, bodies, Position((50 * (step + 1),)))
        index.merge()
        known |= dict(zip(ids.tolist(), bodies.tolist(), strict=True))
    every = np.array(list(known), np.uint64)
    for one in (index, opened(tmp_path)):
        found, bodies = one.look_up(np.concatenate([every, numbers(77, 500)]))
        assert found.tolist() == [True] * len(every) + [False] * 500
        assert bodies[: len(every)].tolist() == list(known.values())
        assert one.position == Position((50 * 3 * MERGED**2,))
        assert len(one) == len(known)
    files = sorted(path.name for path in (tmp_path / "ids").glob("*.run"))
    assert len(files) <= 2 * MERGED


def damaged(folder: Path) -> None:
    path = next(folder.glob("*.run"))
    data = bytearray(path.read_bytes())
    data[17] ^= 4
    path.write_bytes(data)


def torn(folder: Path) -> None:
    (folder / "index.json").write_text('{"field": "event_id"')


def missing(folder: Path) -> None:
    next(folder.glob("*.run")).unlink()


def of_a_newer_headrace(folder: Path) -> None:
    path = folder / "index.json"
    path.write_text(path.read_text().replace('"version":1', '"version":2'))


@pytest.mark.parametrize("spoil", [damaged, torn, missing, of_a_newer_headrace])
def test_an_index_that_is_not_what_was_written_is_begun_anew(tmp_path: Path, spoil: object) -> None:
    opened(tmp_path).add(numbers(1, 10), numbers(2, 10), Position((10,)))
    assert opened(tmp_path).position == Position((10,))
    spoil(tmp_path / "ids")  # type: ignore[operator]
    again = opened(tmp_path)
    assert (again.position, len(again)) == (Position((0,)), 0)
    assert [path.name for path in (tmp_path / "ids").iterdir()] == ["index.json"]


def test_an_index_of_another_field_or_ahead_of_the_log_is_begun_anew(tmp_path: Path) -> None:
    for changes in ({"field": "other"}, {"end": Position((9,))}, {"end": Position((99, 99))}):
        opened(tmp_path).add(numbers(1, 10), numbers(2, 10), Position((10,)))
        assert len(opened(tmp_path)) == 10
        again = opened(tmp_path, **changes)  # type: ignore[arg-type]
        assert len(again) == 0
        opened(tmp_path)


def test_files_that_a_killed_process_left_are_removed(tmp_path: Path) -> None:
    opened(tmp_path).add(numbers(1, 10), numbers(2, 10), Position((10,)))
    (tmp_path / "ids" / "7.run").write_bytes(b"half of a merge")
    assert len(opened(tmp_path)) == 10
    assert [path.name for path in (tmp_path / "ids").glob("*.run")] == ["1.run"]


def test_a_merge_leaves_no_files_behind(tmp_path: Path) -> None:
    index = opened(tmp_path)
    for step in range(MERGED):
        index.add(numbers(step, 5), numbers(9, 5), Position((step + 1,)))
    index.merge()
    assert len(list((tmp_path / "ids").glob("*.run"))) == 1
    assert len(opened(tmp_path)) == 5 * MERGED


def no_room(*_: object) -> None:
    raise OSError(errno.ENOSPC, "no space left on device")


@pytest.mark.parametrize("failing", ["posix_fallocate", "fsync"])
def test_what_cannot_be_written_leaves_no_file_and_can_be_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    index = opened(tmp_path)
    for step in range(MERGED - 1):
        index.add(numbers(step, 5), numbers(9, 5), Position((step + 1,)))
    before = sorted((tmp_path / "ids").glob("*.run"))
    monkeypatch.setattr(os, failing, no_room)
    with pytest.raises(OSError, match="no space left"):
        index.add(numbers(7, 5), numbers(9, 5), Position((9,)))
    assert sorted((tmp_path / "ids").glob("*.run")) == before
    monkeypatch.undo()
    index.add(numbers(7, 5), numbers(9, 5), Position((9,)))
    merged = sorted((tmp_path / "ids").glob("*.run"))
    monkeypatch.setattr(os, failing, no_room)
    with pytest.raises(OSError, match="no space left"):
        index.merge()
    assert sorted((tmp_path / "ids").glob("*.run")) == merged
    monkeypatch.undo()
    index.merge()
    assert len(opened(tmp_path)) == 5 * MERGED


FULL_DISK = """
import errno, sys
from pathlib import Path
import numpy as np
from headrace.core.position import Position
from headrace.ingest.id_index import IdIndex
index = IdIndex(Path(sys.argv[1]), "event_id", Position((1_000_000,)))
ids = np.arange(500_000, dtype=np.uint64)
try:
    index.add(ids, ids, Position((500_000,)))
except OSError as error:
    print(errno.errorcode[error.errno], *sorted(p.name for p in index.folder.iterdir()))
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MiB; to mount it takes the right to."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], check=True)
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.prove
@pytest.mark.process
def test_a_full_disk_is_an_error_and_does_not_kill_the_process(small_disk: Path) -> None:
    """A page of a mapped file that the disk cannot hold would be a SIGBUS."""
    command = [sys.executable, "-c", FULL_DISK, str(small_disk / "ids")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "ENOSPC index.json\n"), done.stderr
