"""The instance that runs a project, over HTTP, found by the lock in the project's folder.

This page imports no Spark: a client in Python reaches an instance through it.
tests/client/test_client.py reaches one by its folder.
"""

from __future__ import annotations

import os

from headrace.api.client import TOKEN_VARIABLE, Remote
from headrace.api.tls import trusting_context
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.run.lock import running_token, running_url


def running(project: Project) -> str | None:
    """Where the project answers, if it runs."""
    return running_url(Layout.of(project))


def reached(project: Project, url: str, token: str | None = None) -> Remote:
    """The instance that runs. Whoever says a token means that one; else it is the one that lies
    beside the address.
    """
    token = token or os.environ.get(TOKEN_VARIABLE) or running_token(Layout.of(project))
    certificate = project.settings.http.tls_cert
    verify = (
        trusting_context(str(project.folder / certificate)) if url.startswith("https:") else None
    )
    return Remote(url, token, verify=verify)
