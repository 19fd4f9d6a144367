"""Drafts are written beside the master, committed by the first step, and never twice."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from headrace.compile.passes import stream_plan
from headrace.core.position import Position
from headrace.define.layout import Layout
from headrace.define.project import Project, load_project
from headrace.master import archive as archive_module
from headrace.master.archive import Archive
from headrace.run import archive_drafts
from headrace.run.archive_drafts import ArchiveDrafts
from headrace.run.stream_intakes import StreamIntakes
from tests.master.bench import InProcess

SQL = "CREATE STREAM clicks (n BIGINT NOT NULL) WITH (partitions = 1);\n"


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_drafts, "EVENTS_MIN", 10)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "headrace.toml").write_text('name = "shop"\n[log]\nfree_bytes_min = 0\n')
    (tmp_path / "clicks.sql").write_text(SQL)
    return load_project(tmp_path)


def send(project: Project, *numbers: int) -> None:
    intakes = StreamIntakes(project)
    intakes.open()
    intakes.intakes["clicks"].accept([b'{"n":%d}' % n for n in numbers])
    intakes.close()


def archive_of(project: Project, drafts: ArchiveDrafts) -> Archive:
    plan, layout = stream_plan(project.streams["clicks"], project), Layout.of(project)
    paths = layout.log("clicks"), layout.master("clicks")
    return Archive(InProcess(), plan, *paths, lambda: drafts.of("clicks"))


def drafted(project: Project, spark: Any) -> ArchiveDrafts:
    drafts, started = ArchiveDrafts(project), Future[Any]()
    drafts.start(started)
    if isinstance(spark, Exception):
        started.set_exception(spark)
    else:
        started.set_result(spark)
    return drafts


def rows(archive: Archive) -> int:
    return sum(file.rows for file in archive.table.newest().files)


def test_a_draft_is_no_part_of_the_master_before_the_first_step(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(project, *range(20))
    drafts = drafted(project, InProcess())
    assert drafts.of("clicks") is not None
    archive = archive_of(project, drafts)
    assert archive.table.newest_or_none() is None
    monkeypatch.setattr(archive_module, "run_task", None)  # nothing is decoded again
    assert archive.step(1_000) == 20
    assert (archive.table.newest().position, rows(archive)) == (Position((20,)), 20)


def test_events_that_come_after_the_draft_are_in_the_next_step(project: Project) -> None:
    send(project, *range(20))
    drafts = drafted(project, InProcess())
    assert drafts.of("clicks") is not None
    send(project, 20, 21)
    archive = archive_of(project, drafts)
    assert [archive.step(1_000), archive.step(1_000), archive.step(1_000)] == [20, 2, 0]
    assert rows(archive) == 22


def test_a_draft_of_a_range_that_is_in_the_master_is_left(project: Project) -> None:
    send(project, *range(20))
    drafts = drafted(project, InProcess())
    assert drafts.of("clicks") is not None
    archive_of(project, ArchiveDrafts(project)).step(1_000)
    archive = archive_of(project, drafts)
    assert archive.step(1_000) == 0
    assert rows(archive) == 20


def test_few_events_are_not_drafted(project: Project) -> None:
    send(project, *range(9))
    assert drafted(project, InProcess()).of("clicks") is None


def test_without_spark_there_is_no_draft(project: Project) -> None:
    send(project, *range(20))
    assert drafted(project, RuntimeError("Spark did not start")).of("clicks") is None
