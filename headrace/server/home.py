"""The folder of a domain. A job's name is validated before it becomes a folder's name, and files
with names chosen by users are only in a version's folder. tests/server/test_home.py checks the
names.
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


def find_home(given: Path | None) -> Path:
    """The given folder, else $HEADRACE_HOME, else ~/.headrace."""
    return given or Path(os.environ.get(HOME) or "~/.headrace").expanduser()


def check_name(name: str) -> str:
    """A job's name; BadRequest if it is not valid.

    >>> check_name("web-shop")
    'web-shop'
    """
    if not _NAME.fullmatch(name):
        shown = name if len(name) <= 63 else name[:63] + "…"
        raise BadRequest(
            f"'{shown}' is not a valid job name",
            hint="use a lowercase letter, then up to 62 lowercase letters, digits, - and _.",
        )
    return name


@dataclass(frozen=True, slots=True)
class Home:
    """The folders and files of a domain."""

    folder: Path

    @property
    def layout(self) -> Layout:
        """The lock, address and log of the server, in the layout of a project."""
        return Layout(self.folder)

    @property
    def database(self) -> Path:
        return self.folder / "domain.db"

    @property
    def settings(self) -> Path:
        return self.folder / "server.toml"

    @property
    def incoming(self) -> Path:
        """Submissions in progress; may be deleted while the server is not running."""
        return self.folder / "incoming"

    def job(self, job: str) -> Path:
        return self.folder / "jobs" / check_name(job)

    def version(self, job: str, number: int) -> Path:
        return self.job(job) / "versions" / str(number)

    def state(self, job: str) -> Layout:
        """Shared by all versions of a job."""
        return Layout(self.job(job) / "state")

    def log(self, job: str) -> Path:
        return self.job(job) / "log" / "run.log"
