"""A command reaches what runs, and the files of what does not, also while it stops."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from headrace.api.client import RemoteService
from headrace.define.layout import Layout
from headrace.define.project import Project, load_project
from headrace.run.connect import connect
from headrace.run.lock import RunLock
from headrace.run.offline import Offline


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "headrace.toml").write_text('name = "shop"\n')
    return load_project(tmp_path)


@pytest.fixture
def lock(project: Project) -> RunLock:
    """Held, with an address at which nothing listens."""
    held = RunLock(Layout.of(project))
    held.acquire()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        held.announce(f"http://127.0.0.1:{free.getsockname()[1]}", "hr_run")
    return held


def kind_of(project: Project, wait_s_max: float) -> type:
    service = connect(project, wait_s_max)
    service.close()
    return type(service)


def test_a_project_that_stops_meanwhile_is_asked_by_its_files(
    project: Project, lock: RunLock
) -> None:
    stopping = threading.Timer(0.3, lock.release)
    stopping.start()
    assert kind_of(project, wait_s_max=20) is Offline
    stopping.join()


def test_a_project_that_neither_listens_nor_stops_is_asked_all_the_same(
    project: Project, lock: RunLock
) -> None:
    assert kind_of(project, wait_s_max=0) is RemoteService
    lock.release()


def test_a_project_that_listens_is_asked_at_once(project: Project, lock: RunLock) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        lock.announce(f"http://127.0.0.1:{server.getsockname()[1]}", "hr_run")
        assert kind_of(project, wait_s_max=0) is RemoteService
    lock.release()
