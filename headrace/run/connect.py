"""How a command reaches a project: the instance that runs it, or its files.

A project that is stopping no longer listens but has its files still; a command waits for it, for a
short time, and then asks the files. tests/run/test_connect.py stops one in between.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from headrace.access.access import Access
from headrace.api.access_service import AccessService
from headrace.api.client import Remote
from headrace.api.limits import policy_of
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.run.journal import keep_no_journal
from headrace.run.offline import Offline
from headrace.run.remote import reached, running

PATIENCE_S = 5.0
_LOOK_S = 0.1


def connect(project: Project, patience_s: float = PATIENCE_S) -> Remote | Offline:
    """The service for a project; close it when done."""
    deadline = time.monotonic() + patience_s
    while url := running(project):
        if _listens(url) or time.monotonic() >= deadline:
            return reached(project, url)
        time.sleep(_LOOK_S)
    keep_no_journal()
    return Offline(project)


@contextmanager
def connect_access(project: Project) -> Iterator[AccessService]:
    """The users of a project: of the instance that runs, or in its file."""
    if url := running(project):
        with reached(project, url) as remote:
            yield remote.access
        return
    layout = Layout.of(project)
    layout.make_state()
    settings = project.settings
    access = Access(layout.access, settings.name, policy=policy_of(settings.access))
    try:
        yield access
    finally:
        access.close()


def _listens(url: str) -> bool:
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 80), timeout=1.0):
            return True
    except OSError:
        return False
