"""Connects a command to a project: over HTTP if it is running, otherwise to its files.

A project that is stopping has closed its port but still holds the lock; a command waits for a short
time until the lock is free. tests/run/test_connect.py stops a project in between.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from headrace.access.access import Access
from headrace.api.access_service import AccessService
from headrace.api.client import RemoteService
from headrace.api.limits import policy_of
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.run.lock import running_url
from headrace.run.log_file import log_to_stderr
from headrace.run.offline import Offline
from headrace.run.remote import remote_of

WAIT_S_MAX = 5.0
_POLL_S = 0.1


def connect(project: Project, wait_s_max: float = WAIT_S_MAX) -> RemoteService | Offline:
    """The service for a project; close it when done."""
    deadline = time.monotonic() + wait_s_max
    layout = Layout.of(project)
    while url := running_url(layout):
        if _listens(url) or time.monotonic() >= deadline:
            return remote_of(project, url)
        time.sleep(_POLL_S)
    log_to_stderr()
    return Offline(project)


@contextmanager
def connect_access(project: Project) -> Iterator[AccessService]:
    """The users of a project: over HTTP if it is running, otherwise in its database."""
    layout = Layout.of(project)
    if url := running_url(layout):
        with remote_of(project, url) as remote:
            yield remote.access
        return
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
