"""Which project a command is about, and how it is reached.

A folder that was given is taken as it is. Otherwise it is the current folder or the nearest above
it that has a headrace.toml, and if there is none the current folder, whose lack of one is then the
error.
tests/cli/test_folder.py checks the order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.api.service import Service
    from headrace.define.project import Project


def found_folder(given: Path | None) -> Path:
    """The folder of the project that a command is about."""
    if given is not None:
        return given
    here = Path.cwd()
    return next((f for f in (here, *here.parents) if (f / "headrace.toml").is_file()), here)


def loaded(folder: Path) -> Project:
    """The project in a folder; BadProject if there is none."""
    from headrace.define.project import load_project

    return load_project(folder)


@contextmanager
def connected(project: Project) -> Iterator[Service]:
    """The project as one that can be asked, wherever it runs; let go of at the end."""
    from headrace.run.connect import connect

    service = connect(project)
    try:
        yield service
    finally:
        close = getattr(service, "close", None)
        if close is not None:
            close()


def near(name: str, known: list[str]) -> str:
    """A hint for a name that is not known."""
    import difflib

    close = difflib.get_close_matches(name, known, 1)
    return f"did you mean '{close[0]}'?" if close else f"there are: {', '.join(known) or 'none'}."
