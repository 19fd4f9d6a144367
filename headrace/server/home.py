"""The folder of a domain. A job's name is checked before it is a folder's name, and nothing that a
user named lies anywhere but in a version's folder. tests/server/test_home.py checks the names.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from headrace.core.errors import BadRequest
from headrace.define.layout import Layout

HOME = "HEADRACE_HOME"
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")


def found_home(given: Path | None) -> Path:
    """The folder that was given, else of $HEADRACE_HOME, else ~/.headrace."""
    return given or Path(os.environ.get(HOME) or "~/.headrace").expanduser()


def checked_name(name: str) -> str:
    """A job's name; BadRequest if it is none.

    >>> checked_name("web-shop")
    'web-shop'
    """
    if not _NAME.fullmatch(name):
        shown = name if len(name) <= 63 else name[:63] + "…"
        raise BadRequest(
            f"'{shown}' is no name for a job",
            hint="a small letter, then up to 62 small letters, digits, - and _.",
        )
    return name


@dataclass(frozen=True, slots=True)
class Home:
    """The folders and files of a domain."""

    folder: Path

    @property
    def layout(self) -> Layout:
        """The server has its lock, address and journal where a project has them."""
        return Layout(self.folder)

    @property
    def database(self) -> Path:
        return self.folder / "domain.db"

    @property
    def settings(self) -> Path:
        return self.folder / "server.toml"

    @property
    def incoming(self) -> Path:
        """What is being submitted; anything in it may be deleted while no server runs."""
        return self.folder / "incoming"

    def job(self, job: str) -> Path:
        return self.folder / "jobs" / checked_name(job)

    def version(self, job: str, number: int) -> Path:
        return self.job(job) / "versions" / str(number)

    def state(self, job: str) -> Layout:
        """Shared by all versions of a job."""
        return Layout(self.job(job) / "state")

    def log(self, job: str) -> Path:
        return self.job(job) / "log" / "run.log"
