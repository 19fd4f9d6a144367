"""How a command reaches a project: the instance that runs it, or its files.

A project that is stopping no longer listens but has its files still; a command waits for it, for a
short time, and then asks the files. tests/run/test_connect.py stops one in between.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from headrace.access.access import Access
from headrace.api.accessbook import AccessBook
from headrace.api.client import TOKEN_VARIABLE, Remote
from headrace.api.tls import trusting
from headrace.define.project import Project
from headrace.run.journal import keep_no_journal
from headrace.run.layout import Layout
from headrace.run.lock import running_token, running_url
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
            return reached(project, url)
        time.sleep(_LOOK_S)
    keep_no_journal()
    return Offline(project)


@contextmanager
def connect_access(project: Project) -> Iterator[AccessBook]:
    """The users of a project: of the instance that runs, or in its file."""
    if url := running(project):
        with reached(project, url) as remote:
            yield remote.access
        return
    access = Access(Layout.of(project).access, project.settings.name)
    try:
        yield access
    finally:
        access.close()


def reached(project: Project, url: str, token: str | None = None) -> Remote:
    """The instance that runs. Whoever says a token means that one; else it is the one that lies
    beside the address.
    """
    token = token or os.environ.get(TOKEN_VARIABLE) or running_token(Layout.of(project))
    certificate = project.settings.http.tls_cert
    verify = trusting(str(project.folder / certificate)) if url.startswith("https:") else None
    return Remote(url, token, verify=verify)


def _listens(url: str) -> bool:
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 80), timeout=1.0):
            return True
    except OSError:
        return False
