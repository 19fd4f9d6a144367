"""A state that was put together of parts of different moments is refused, with a sentence."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from headrace.core.errors import BadProject
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.log.embedded.writer import EmbeddedWriter
from headrace.log.opening import logs_in
from headrace.run.instance import Instance
from headrace.run.lock import RunLock
from headrace.run.offline import Offline
from headrace.run.state_check import check_state

from .stopped import OLD_MARKS, cut_power, make_stopped


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_stopped(tmp_path / "project")


def refused(project: Project) -> str:
    with pytest.raises(BadProject) as caught:
        check_state(Layout.of(project), project.streams)
    return f"{caught.value.message}; {caught.value.detail}"


def begin_log_again(project: Project) -> None:
    shutil.rmtree(log := Layout.of(project).log("clicks").folder)
    EmbeddedWriter.open(log, 2, segment_bytes_max=1 << 20).close()


def test_a_whole_state_is_taken(project: Project) -> None:
    check_state(Layout.of(project), project.streams)
    assert logs_in(Layout.of(project).logs) == {"clicks": 2}


@pytest.mark.parametrize("mark", OLD_MARKS)
def test_a_state_after_a_power_cut_is_whole(project: Project, mark: bytes) -> None:
    cut_power(project, mark)
    instance = Instance(project, lambda kind, fields: None)
    instance.open()
    assert instance.log_end("clicks").offsets == (5, 5)
    instance.close()


def test_a_log_that_is_older_than_the_master_is_refused(project: Project) -> None:
    begin_log_again(project)
    Layout.of(project).store.path.unlink()
    assert refused(project) == (
        "the state is inconsistent: the master has records that are not in the log; "
        "stream 'clicks', partition 0, offsets [0, 3)."
    )


def test_a_log_that_is_older_than_the_store_is_refused(project: Project) -> None:
    begin_log_again(project)
    shutil.rmtree(Layout.of(project).master("clicks"))
    assert "the store has records that are not in the log" in refused(project)


def test_a_master_that_is_older_than_what_the_log_still_has_is_refused(project: Project) -> None:
    layout = Layout.of(project)
    for partition in ("0", "1"):
        (segment,) = (layout.log("clicks").folder / partition).glob("*.seg")
        segment.rename(segment.with_name(f"{7:020d}.seg"))
    assert "the log starts after the end of the master" in refused(project)


def test_a_store_that_was_deleted_may_be_made_again(project: Project) -> None:
    Layout.of(project).store.path.unlink()
    check_state(Layout.of(project), project.streams)


def test_a_run_refuses_before_anything_is_written(project: Project) -> None:
    with closing(sqlite3.connect(Layout.of(project).store.path)) as db, db:
        db.execute("UPDATE _progress SET next_offset = 99")
    instance = Instance(project, lambda kind, fields: None)
    with pytest.raises(BadProject, match="the store has records that are not in the log"):
        instance.open()
    instance.close()


def test_nothing_is_sent_into_a_state_of_different_moments(project: Project) -> None:
    begin_log_again(project)
    offline = Offline(project)
    for _ in range(2):
        with pytest.raises(BadProject, match="records that are not in the log"):
            offline.submit("clicks", [b"{}"])
    offline.close()
    lock = RunLock(Layout.of(project))
    lock.acquire()
    lock.release()
