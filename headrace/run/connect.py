"""How a command reaches a project: the instance that runs it, or its files."""

from __future__ import annotations

from headrace.api.client import Remote
from headrace.define.project import Project
from headrace.run.layout import Layout
from headrace.run.lock import running_url
from headrace.run.offline import Offline


def running(project: Project) -> str | None:
    """Where the project answers, if it runs."""
    return running_url(Layout.of(project))


def connect(project: Project) -> Remote | Offline:
    """The service for a project; close it when done."""
    url = running(project)
    return Remote(url) if url else Offline(project)
