"""How a command reaches a project: the instance that runs it, or its files.

A project that is stopping no longer listens but has its files still; a command waits for it, for a
short time, and then asks the files. tests/run/test_connect.py stops one in between.
"""

from __future__ import annotations

import socket
import time
from urllib.parse import urlsplit

from headrace.api.client import Remote
from headrace.define.project import Project
from headrace.run.layout import Layout
from headrace.run.lock import running_url
from headrace.run.offline import Offline

PATIENCE_S = 5.0
_LOOK_S = 0.1


def running(project: Project) -> str | None:
    """Where the project answers, if it runs."""
    return running_url(Layout.of(project))


def connect(project: Project, patience_s: float = PATIENCE_S) -> Remote | Offline:
    """The service for a project; close it when done."""
    deadline = time.monotonic() + patience_s
    while url := running(project):
        if _listens(url) or time.monotonic() >= deadline:
            return Remote(url)
        time.sleep(_LOOK_S)
    return Offline(project)


def _listens(url: str) -> bool:
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 80), timeout=1.0):
            return True
    except OSError:
        return False
