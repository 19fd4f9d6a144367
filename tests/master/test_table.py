"""Whole ranges are appended, once each, with the position after them; compaction changes no row."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec
import pytest
from deltalake import DeltaTable

from headrace.compile.plan import ColumnPlan
from headrace.core.event import EventStatus
from headrace.core.position import Position, PositionRange
from headrace.master.decoding import declared_schema
from headrace.master.table import CHECKPOINT_COMMITS, KEPT_HOURS, MasterTable, counts, event_files

from .bench import CLICKS, Bench, InProcess, click


def test_a_new_master_is_empty_and_at_the_start(bench: Bench) -> None:
    assert bench.table.newest().position == Position((0, 0))
    assert bench.table.newest().highs == (None, None)
    assert bench.table.newest().files == ()


def test_a_range_is_appended_once(bench: Bench) -> None:
    bench.send(0, click("ann"), click("bob"))
    bench.send(1, click("cid"))
    assert bench.archive.step(100) == 3
    assert bench.archive.step(100) == 0
    assert [row["user"] for row in bench.rows()] == ["ann", "bob", "cid"]
    assert bench.table.newest().position == Position((2, 1))


@pytest.mark.parametrize("lower", ["0,0", "1,0", "3,1", "2,2"])
def test_a_range_that_does_not_begin_at_the_position_is_refused(bench: Bench, lower: str) -> None:
    bench.send(0, click("ann"), click("bob"))
    bench.send(1, click("cid"))
    bench.archive.step(100)
    before, files = bench.rows(), bench.table.newest().files
    span = PositionRange(Position.parse(lower), Position((9, 9)))
    with pytest.raises(ValueError, match=f"expected a range from 2,1, got {lower}"):
        bench.table.append(span, files, (None, None))
    assert bench.rows() == before
    assert bench.table.newest().position == Position((2, 1))


def test_files_that_were_written_but_not_committed_are_not_seen(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.send(0, click("ann"))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bench.table, "append", killed)
    with pytest.raises(KeyboardInterrupt):
        bench.archive.step(100)
    monkeypatch.undo()
    assert list(bench.table.path.rglob("*.parquet"))
    assert (bench.rows(), bench.table.newest().position) == ([], Position((0, 0)))
    bench.archive.step(100)
    assert [row["user"] for row in bench.rows()] == ["ann"]


def test_the_highest_event_times_are_of_the_same_version_as_the_position(bench: Bench) -> None:
    bench.send(1, click("ann", 7), click("bob", 5))
    bench.archive.step(100)
    version = bench.table.newest()
    assert version.position == Position((0, 2))
    assert version.highs == (None, bench.clock.now_us + 7_000_000)


def test_a_declared_column_that_was_added_is_null_in_older_rows(
    bench: Bench, tmp_path: Path
) -> None:
    bench.send(0, click("ann", referrer="/x"))
    bench.archive.step(100)
    columns = (*CLICKS.columns, ColumnPlan("referrer", "STRING", True))
    wider = msgspec.structs.replace(CLICKS, columns=columns)
    bench.topic.close()
    again = Bench(tmp_path, InProcess(), wider)
    again.send(0, click("bob", referrer="/y"))
    again.archive.step(100)
    assert "referrer" in again.table.newest().columns
    assert [(row["user"], row.get("referrer")) for row in again.rows()] == [
        ("ann", None),
        ("bob", "/y"),
    ]
    assert again.table.newest().position == Position((2, 0))
    again.topic.close()


@pytest.mark.parametrize(
    ("lower", "upper", "users"),
    [((0, 0), (2, 0), 1), ((0, 0), (4, 0), 2), ((2, 0), (4, 0), 1), ((4, 0), (4, 0), 0)],
)
def test_only_the_files_that_may_hold_a_range_are_named(
    bench: Bench, lower: tuple[int, int], upper: tuple[int, int], users: int
) -> None:
    for number in range(2):
        bench.send(0, click(f"u{number}"), b"not json")
        bench.archive.step(100)
    span = PositionRange(Position(lower), Position(upper))
    assert len(event_files(bench.table.newest().files, span)) == users


def test_a_file_is_measured_by_its_own_partition(bench: Bench) -> None:
    for _ in range(3):
        bench.send(0, *[click("ann")] * 10)
        bench.send(1, click("bob"))
        bench.archive.step(100)
    last = PositionRange(Position((20, 2)), Position((30, 3)))
    found = event_files(bench.table.newest().files, last)
    assert sorted((file.partition, file.first_offset) for file in found) == [(0, 20), (1, 2)]


def test_counts_are_told_by_status(bench: Bench) -> None:
    bench.send(0, click("ann"), click("bob"), b"{")
    bench.send(1, click("ann"), status=EventStatus.DUPLICATE)
    bench.archive.step(100)
    assert counts(bench.table.newest().files) == {"event": 2, "duplicate": 1, "dead_letter": 1}


def test_a_table_can_be_opened_by_who_has_not_made_it(bench: Bench) -> None:
    bench.send(0, click("ann"))
    bench.archive.step(100)
    other = MasterTable(bench.table.path, declared_schema(CLICKS), 2)
    assert other.newest().position == Position((1, 0))
    assert other.newest().files == bench.table.newest().files


def test_a_version_is_kept_until_there_is_a_newer_one_whoever_makes_it(bench: Bench) -> None:
    other = MasterTable(bench.table.path, declared_schema(CLICKS), 2)
    assert other.newest_or_none() is None
    bench.send(0, click("ann"))
    bench.archive.step(100)
    first = other.newest_or_none()
    assert first is not None
    assert other.newest() is other.newest_or_none() is first
    bench.send(0, click("bob"))
    bench.archive.step(100)
    assert other.newest().position == Position((2, 0))
    assert len(other.newest().files) == 2
    # Whoever has the older one still reads what belongs together.
    assert (first.position, len(first.files)) == (Position((1, 0)), 1)


def test_a_version_is_known_to_be_old_also_when_the_commits_since_are_summed_up_and_gone(
    bench: Bench,
) -> None:
    other = MasterTable(bench.table.path, declared_schema(CLICKS), 2)
    assert other.newest().position == Position((0, 0))
    _commit(bench, CHECKPOINT_COMMITS + 1)
    log = bench.table.path / "_delta_log"
    for number in range(CHECKPOINT_COMMITS):
        (log / f"{number:020}.json").unlink()
    assert other.newest().position == Position((CHECKPOINT_COMMITS + 1, 0))


def test_commits_that_are_summed_up_and_old_are_removed(bench: Bench) -> None:
    _commit(bench, 2 * CHECKPOINT_COMMITS)
    log = bench.table.path / "_delta_log"
    old = time.time() - (KEPT_HOURS + 1) * 3600
    for file in log.iterdir():
        os.utime(file, (old, old))
    _commit(bench, CHECKPOINT_COMMITS)
    assert len(list(log.glob("*.json"))) < 3 * CHECKPOINT_COMMITS
    assert len(bench.rows()) == 3 * CHECKPOINT_COMMITS
    other = MasterTable(bench.table.path, declared_schema(CLICKS), 2)
    assert other.newest().position == Position((3 * CHECKPOINT_COMMITS, 0))


def test_few_files_of_the_log_have_to_be_read_however_many_commits_there_were(bench: Bench) -> None:
    _commit(bench, 3 * CHECKPOINT_COMMITS)
    log = bench.table.path / "_delta_log"
    commits = max(int(file.stem) for file in log.glob("*.json"))
    summed = max(int(file.name.split(".")[0]) for file in log.glob("*.checkpoint.parquet"))
    assert commits == 3 * CHECKPOINT_COMMITS
    assert commits - summed < CHECKPOINT_COMMITS


class Synced:
    """Notes each sync of a master, and what is in Delta's log when commits are to be removed."""

    def __init__(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log, self.paths, self.removals = bench.table.path / "_delta_log", set[Path](), 0
        cleanup = DeltaTable.cleanup_metadata
        monkeypatch.setattr("headrace.master.table.sync", self.paths.add)

        def removing(delta: DeltaTable) -> None:
            self.removals += 1
            assert self.is_whole()
            cleanup(delta)

        monkeypatch.setattr(DeltaTable, "cleanup_metadata", removing)

    def is_whole(self) -> bool:
        return {self.log, *self.log.iterdir()} <= self.paths


def test_each_commit_is_durable_before_it_stands_for_anything(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = Synced(bench, monkeypatch)
    for _ in range(2 * CHECKPOINT_COMMITS):
        _commit(bench, 1)
        assert synced.is_whole()
    assert bench.compact(files_max=2)
    assert synced.is_whole()
    assert synced.removals == 2


def test_a_commit_that_a_killed_process_left_is_durable_before_the_log_is_removed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    _commit(bench, 3)
    other = MasterTable(bench.table.path, declared_schema(CLICKS), 2)
    synced = Synced(bench, monkeypatch)
    assert other.newest().position == Position((3, 0))
    assert synced.paths == set()
    assert other.durable().position == Position((3, 0))
    assert synced.is_whole()


def _commit(bench: Bench, times: int) -> None:
    for number in range(times):
        bench.send(0, click(f"u{number}"))
        assert bench.archive.step(100) == 1
