"""The client of a running project, whose address and token are read from its state folder.

This module imports no Spark, because the Python client uses it.
tests/client/test_client.py connects to a project by its folder.
"""

from __future__ import annotations

import os

from headrace.api.client import TOKEN_VARIABLE, RemoteService
from headrace.api.tls import trusting_context
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.run.lock import running_token


def remote_of(project: Project, url: str, token: str | None = None) -> RemoteService:
    """The client of the instance at a URL. The token is the argument, that of the environment, or
    the one in the state folder.
    """
    token = token or os.environ.get(TOKEN_VARIABLE) or running_token(Layout.of(project))
    certificate = project.settings.http.tls_cert
    verify = (
        trusting_context(str(project.folder / certificate)) if url.startswith("https:") else None
    )
    return RemoteService(url, token, verify=verify)
