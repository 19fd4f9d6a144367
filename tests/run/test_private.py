"""What a project keeps is for its owner alone, from the first byte."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from headrace.core.errors import HeadraceError
from headrace.define.layout import Layout
from headrace.define.project import load_project
from headrace.run.connect import connect_access
from headrace.run.lock import running_url
from headrace.run.log_file import log_to_file
from headrace.run.offline import Offline
from tests.run.modes import readable_by_others
from tests.run.process import make_project

NOBODY = 65534


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """The umask of most machines, under which new files can be read by everybody."""
    before = os.umask(0o022)
    yield
    os.umask(before)
    if file := getattr(structlog.get_config()["logger_factory"], "_file", None):
        file.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


def test_what_is_sent_to_a_stopped_project_is_for_its_owner_alone(folder: Path) -> None:
    project = load_project(folder)
    service = Offline(project)
    service.submit("clicks", [b'{"n":1,"page":"a","ts":"2026-01-01T00:00:00Z"}']).result()
    service.close()
    assert len(list(project.state.rglob("*"))) > 5
    assert readable_by_others(project.state) == []


def test_users_of_a_stopped_project_and_its_journal_are_for_its_owner_alone(folder: Path) -> None:
    project = load_project(folder)
    with connect_access(project) as access:
        assert access.users() == []
    log_to_file(Layout.of(project), "shop", project.settings.log)
    structlog.get_logger().info("something happened")
    assert (project.state / "headrace.log").read_text() != ""
    assert readable_by_others(project.state) == []


def test_a_folder_that_others_could_read_is_closed(folder: Path) -> None:
    project = load_project(folder)
    project.state.mkdir(mode=0o755)
    Offline(project).close()
    assert stat.S_IMODE(project.state.stat().st_mode) == 0o700


def test_another_user_is_told_whose_the_project_is() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        state = Path(folder, "state")
        state.mkdir(mode=0o000)  # also for the owner, where the tests are not root's
        said = _as_somebody_else(state)
    assert said == (
        "Unavailable: this user may not read the project's state\n"
        "  hint: run the command as the user who runs the project, or use its URL."
    )


def _as_somebody_else(state: Path) -> str:
    """What a process of another user is told that asks where the project runs."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        try:
            if os.geteuid() == 0:
                os.setuid(NOBODY)
            said = str(running_url(Layout(state)))
        except HeadraceError as error:
            said = str(error)
        except BaseException as error:
            said = repr(error)
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        said = file.read()
    os.wait()
    return said
