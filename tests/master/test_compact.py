"""Compaction changes no row, and moves none that need not be moved."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec
import pytest

from headrace.compile.plan import ColumnPlan
from headrace.master import compact
from headrace.master.table import KEPT_HOURS, counts

from .bench import CLICKS, Bench, click

DAY_US = 86_400_000_000


def test_every_row_stays_and_so_does_the_position(bench: Bench) -> None:
    for number in range(6):
        bench.send(number % 2, click(f"u{number}", number), b"not json")
        bench.archive.step(100)
    rows, before = bench.rows(), bench.table.newest()
    assert not bench.compact(files_max=4)
    assert bench.table.newest() is before
    assert bench.compact(files_max=3)
    after = bench.table.newest()
    assert (len(before.files), len(after.files)) == (12, 4)
    assert bench.rows() == rows
    assert (after.position, after.highs) == (before.position, before.highs)
    assert counts(after.files) == counts(before.files)
    bench.send(0, click("after"))
    assert bench.archive.step(100) == 1
    assert len(bench.rows()) == len(rows) + 1


def test_files_still_say_which_offsets_they_hold(bench: Bench) -> None:
    _steps(bench, 4)
    assert bench.compact(files_max=2)
    found = [
        (file.first_offset, file.next_offset, file.rows) for file in bench.table.newest().files
    ]
    assert found == [(0, 4, 4)]


def test_a_file_of_many_columns_still_says_which_offsets_it_holds(tmp_path: Path) -> None:
    more = tuple(ColumnPlan(f"c{number}", "STRING", True) for number in range(60))
    wide = Bench(tmp_path, stream=msgspec.structs.replace(CLICKS, columns=CLICKS.columns + more))
    _steps(wide, 3)
    assert wide.compact(files_max=2)
    (file,) = wide.table.newest().files
    assert (file.first_offset, file.next_offset) == (0, 3)
    wide.topic.close()


def test_what_no_version_names_is_removed_once_it_is_old(bench: Bench) -> None:
    _steps(bench, 2)
    named = bench.table.newest().files[0].path
    old, new = (Path(named).with_name(f"{name}.parquet") for name in ("old", "new"))
    for left in (old, new):
        left.write_bytes(b"of a process that was killed")
    hours = (KEPT_HOURS + 1) * 3600
    os.utime(old, (time.time() - hours, time.time() - hours))
    assert bench.compact(files_max=2)
    assert (old.exists(), new.exists(), Path(named).exists()) == (False, True, True)


def test_a_day_that_has_few_small_files_is_left_alone(bench: Bench) -> None:
    for _ in range(3):
        _steps(bench, 1)
        bench.clock.now_us += DAY_US
    assert not bench.compact(files_max=2), "a file of each day cannot be merged with another"
    alone = set(bench.table.newest().files)
    _steps(bench, 2)
    assert bench.compact(files_max=2)
    assert alone < set(bench.table.newest().files)
    assert len(bench.table.newest().files) == 4


def test_a_file_that_is_large_enough_is_left_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5_000):
        bench.send(0, click(f"u{number}", number))
    bench.archive.step(10_000)
    (large,) = bench.table.newest().files
    _steps(bench, 3)
    monkeypatch.setattr(compact, "SMALL_BYTES", large.bytes)
    monkeypatch.setattr(compact, "LARGE_BYTES", large.bytes)
    assert not bench.compact(files_max=4)
    assert bench.compact(files_max=3)
    assert large in bench.table.newest().files
    assert len(bench.table.newest().files) == 2


def _steps(bench: Bench, times: int) -> None:
    for number in range(times):
        bench.send(0, click(f"v{number}", number))
        bench.archive.step(100)
