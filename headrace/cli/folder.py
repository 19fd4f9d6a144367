"""Which project a command is about, and how it is reached.

It is the project in a folder. Where a job is named, it is that job of a server that is asked,
whatever the folder. tests/cli/test_folder.py checks both.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.core.errors import NotFound

if TYPE_CHECKING:
    from headrace.api.service import Service
    from headrace.define.layout import Layout
    from headrace.define.project import Project

JOB = "HEADRACE_JOB"


def loaded(folder: Path) -> Project:
    """The project in a folder; BadProject if there is none."""
    from headrace.define.project import load_project

    return load_project(folder)


def kept_here(folder: Path, *, empty: bool = False) -> tuple[Layout, str]:
    """Where the files of the project in a folder, or of the job that was named, are, and its name;
    for commands that work on files. With `empty` a job may have no state yet.
    """
    from headrace.define.layout import Layout

    job = named_job()
    if not job:
        project = loaded(folder)
        return Layout.of(project), project.settings.name
    from headrace.server.home import Home, found_home

    layout = Home(found_home(None)).state(job)
    if not (layout.state.parent if empty else layout.state).is_dir():
        raise NotFound(
            f"the files of the job '{job}' are not on this machine: {layout.state}",
            hint="run this where its server is, with HEADRACE_HOME.",
        )
    return layout, job


def asked(folder: Path) -> AbstractContextManager[Service]:
    """The project in a folder, or the job that was named, as one that can be asked."""
    return opened(lambda: loaded(folder))


def named_job() -> str | None:
    """The job that commands are about; None if they are about a project here."""
    return os.environ.get(JOB)


@contextmanager
def opened(project: Callable[[], Project]) -> Iterator[Service]:
    """A project, or the job that was named, wherever it runs; let go of at the end."""
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
    from headrace.server.client import found_server

    return found_server(None, None).open_job(job)


def near(name: str, known: list[str]) -> str:
    """A hint for a name that is not known."""
    import difflib

    close = difflib.get_close_matches(name, known, 1)
    return f"did you mean '{close[0]}'?" if close else f"there are: {', '.join(known) or 'none'}."
