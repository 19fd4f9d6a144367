"""The project or job of a command, and the connection to it.

By default it is the project in a folder. If a job is given by --job or HEADRACE_JOB, it is that job
of a server. tests/cli/test_folder.py checks both.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.core.errors import NotFound, did_you_mean

if TYPE_CHECKING:
    from headrace.api.service import Service
    from headrace.define.layout import Layout
    from headrace.define.project import Project

JOB = "HEADRACE_JOB"


def load(folder: Path) -> Project:
    """The project in a folder; BadProject if there is none."""
    from headrace.define.project import load_project

    return load_project(folder)


def local_state(folder: Path, *, empty: bool = False) -> tuple[Layout, str]:
    """The state folder and the name of the project in a folder, or of the selected job; for
    commands that work on files. With `empty` a job may have no state yet.
    """
    from headrace.define.layout import Layout

    job = named_job()
    if not job:
        project = load(folder)
        return Layout.of(project), project.settings.name
    from headrace.server.home import Home, find_home

    layout = Home(find_home(None)).state(job)
    if not (layout.state.parent if empty else layout.state).is_dir():
        raise NotFound(
            f"the files of the job '{job}' are not on this machine: {layout.state}",
            hint="run this on the machine of its server, with HEADRACE_HOME.",
        )
    return layout, job


def open_service(folder: Path) -> AbstractContextManager[Service]:
    """The service of the project in a folder, or of the selected job."""
    return open_project_or_job(lambda: load(folder))


def named_job() -> str | None:
    """The selected job; None for the project in a folder."""
    return os.environ.get(JOB)


@contextmanager
def open_project_or_job(project: Callable[[], Project]) -> Iterator[Service]:
    """The service of a project, or of the selected job, wherever it runs; closed at the end."""
    service = _of_a_server(job) if (job := named_job()) else _here(project())
    try:
        yield service
    finally:
        close = getattr(service, "close", None)
        if close is not None:
            close()


def _here(project: Project) -> Service:
    from headrace.run import connect

    return connect.connect(project)


def _of_a_server(job: str) -> Service:
    from headrace.server.client import find_server

    return find_server(None, None).open_job(job)


def name_hint(name: str, known: list[str]) -> str | None:
    """A hint for an unknown name."""
    return did_you_mean(name, known, f"available: {', '.join(known) or 'none'}.")
