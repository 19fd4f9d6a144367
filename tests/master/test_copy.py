"""A copy of a version is a table of its own, with the same rows, and goes on from there."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.compile.plan import ColumnPlan
from headrace.core.errors import CorruptMaster
from headrace.master.copy import copy_master, link_files
from headrace.master.decoding import declared_schema
from headrace.master.table import MasterTable, added_fields

from .bench import CLICKS, Bench, InProcess, click
from .test_damage import flip


@pytest.fixture
def filled(bench: Bench) -> Bench:
    for step in range(3):
        bench.send(0, click("ann", step), b"no json")
        bench.send(1, click("bob", 9 - step))
        bench.archive.step(100)
    return bench


def opened(path: Path) -> MasterTable:
    return MasterTable(path, declared_schema(CLICKS), CLICKS.partitions)


def test_a_version_is_copied_whole_also_when_the_table_has_gone_on(
    filled: Bench, tmp_path: Path
) -> None:
    version, rows = filled.table.newest(), filled.rows()
    filled.send(0, click("after"))
    filled.archive.step(100)
    assert filled.compact(files_max=2)
    copy_master(version, tmp_path / "copy", tmp_path / "links")
    copy = opened(tmp_path / "copy").newest()
    assert (copy.position, copy.highs, copy.columns) == (
        version.position,
        version.highs,
        version.columns,
    )
    found = [row for file in copy.files for row in pq.read_table(file.path).to_pylist()]
    assert len(found) == len(rows)


def test_an_empty_version_is_copied_too(bench: Bench, tmp_path: Path) -> None:
    copy_master(bench.table.newest(), tmp_path / "copy", tmp_path / "links")
    assert opened(tmp_path / "copy").newest().files == ()


def test_a_column_that_was_added_is_in_the_copy(filled: Bench, tmp_path: Path) -> None:
    wider = msgspec.structs.replace(
        CLICKS, columns=(*CLICKS.columns, ColumnPlan("more", "STRING", True))
    )
    filled.topic.close()
    again = Bench(tmp_path, InProcess(), wider)
    copy_master(again.table.newest(), tmp_path / "copy", tmp_path / "links")
    copy = pa.schema(opened(tmp_path / "copy").newest().delta.schema())
    assert added_fields(copy) == ["more"]
    assert "more" in opened(tmp_path / "copy").newest().columns
    again.topic.close()


def test_damage_is_not_copied(filled: Bench, tmp_path: Path) -> None:
    flip(filled.table.newest().files[0].path, 30)
    with pytest.raises(CorruptMaster):
        copy_master(filled.table.newest(), tmp_path / "copy", tmp_path / "links")


def test_files_that_a_vacuum_removes_meanwhile_are_copied_from_their_links(
    filled: Bench, tmp_path: Path
) -> None:
    version, rows = filled.table.newest(), filled.rows()
    link_files(version, tmp_path / "links")
    for file in version.files:
        Path(file.path).unlink()
    copy_master(version, tmp_path / "copy", tmp_path / "links")
    copy = opened(tmp_path / "copy").newest()
    found = [row for file in copy.files for row in pq.read_table(file.path).to_pylist()]
    assert len(found) == len(rows)


def test_a_disk_without_links_is_copied_from_where_the_files_are(
    filled: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object) -> None:
        raise OSError(95, "operation not supported")

    monkeypatch.setattr(os, "link", no_links)
    link_files(version := filled.table.newest(), tmp_path / "links")
    copy_master(version, tmp_path / "copy", tmp_path / "links")
    assert len(opened(tmp_path / "copy").newest().files) == len(version.files)
