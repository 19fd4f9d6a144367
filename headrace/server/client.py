"""The client of a server of jobs over HTTP, for the command line.

A command without a response is retried once with the same id, so that a broken connection does not
execute it twice. tests/server/test_client.py checks it against a real server.
"""

from __future__ import annotations

import os
import secrets
import ssl
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from headrace.api.client import TOKEN_VARIABLE, WORK_TIMEOUT, RemoteService
from headrace.api.tls import trusting_context, with_paths
from headrace.core.errors import Unavailable
from headrace.run.lock import running_token, running_url
from headrace.server.commands import CommandResult
from headrace.server.handlers import COMMAND
from headrace.server.home import Home, find_home
from headrace.server.package import MEDIA
from headrace.server.resources import ResourceRequest
from headrace.server.settings import load_server_settings
from headrace.server.shapes import JobList, JobStatus, LogLines, VersionList

SERVER = "HEADRACE_SERVER"


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The URL and token of a server; for one on this machine also its certificate."""

    url: str
    token: str | None = None
    certificate: str = ""

    def open(self) -> ServerRemote:
        return ServerRemote(self.url, self.token, verify=self._verify)

    def open_job(self, job: str) -> RemoteService:
        """One job of the server, as a running project."""
        return JobRemote(self.url.rstrip("/") + _path(job, "/api"), self.token, verify=self._verify)

    @property
    def _verify(self) -> ssl.SSLContext | None:
        return trusting_context(self.certificate) if self.certificate else None


def find_server(url: str | None, home: Path | None) -> ServerAddress:
    """The server of --server or $HEADRACE_SERVER, else the one of the home folder. The token is
    $HEADRACE_TOKEN, else the one in the home folder.
    """
    token = os.environ.get(TOKEN_VARIABLE)
    if named := url or ("" if home else os.environ.get(SERVER)):
        return ServerAddress(named, token)
    found = Home(find_home(home))
    if (running := running_url(found.layout)) is None:
        raise Unavailable(
            f"the server in {found.folder} is not running",
            hint="start it with `headrace serve`, or give the URL of another with --server or "
            "HEADRACE_SERVER.",
        )
    certificate = ""
    if running.startswith("https:"):
        http = load_server_settings(found.settings).http
        certificate = with_paths(http, found.folder).tls_cert
    return ServerAddress(running, token or running_token(found.layout), certificate)


class JobRemote(RemoteService):
    """A job of a server."""

    start_command = "headrace serve"


class ServerRemote(RemoteService):
    """A server of jobs at a URL."""

    start_command = "headrace serve"

    def jobs(self) -> JobList:
        return self._ask(JobList, "GET", "/v1/jobs")

    def job(self, job: str) -> JobStatus:
        return self._ask(JobStatus, "GET", _path(job))

    def versions(self, job: str) -> VersionList:
        return self._ask(VersionList, "GET", _path(job, "/versions"))

    def logs(self, job: str, lines: int) -> list[str]:
        return self._ask(LogLines, "GET", _path(job, "/logs"), params={"tail": lines}).lines

    def submit_job(
        self, job: str, project: bytes, resources: ResourceRequest, id: str | None = None
    ) -> CommandResult:
        return self._upload("/v1/jobs", {"name": job}, project, resources, id)

    def apply(
        self, job: str, project: bytes, resources: ResourceRequest, id: str | None = None
    ) -> CommandResult:
        return self._upload(_path(job, "/versions"), {}, project, resources, id)

    def rollback(self, job: str, version: int | None, id: str | None = None) -> CommandResult:
        params = {} if version is None else {"version": version}
        return self._command(_path(job, "/rollback"), id, params=params)

    def switch(self, job: str, verb: str, id: str | None = None) -> CommandResult:
        return self._command(_path(job, f"/{verb}"), id)

    def _upload(
        self,
        path: str,
        params: dict[str, Any],
        project: bytes,
        resources: ResourceRequest,
        id: str | None,
    ) -> CommandResult:
        values = {"cores": resources.cores, "memory": resources.memory, "pool": resources.pool}
        values["tags"] = ",".join(resources.tags) if resources.tags is not None else None
        given = params | {name: value for name, value in values.items() if value is not None}
        media = {"Content-Type": MEDIA}
        return self._command(path, id, params=given, content=project, headers=media)

    def _command(
        self, path: str, id: str | None, headers: dict[str, str] | None = None, **request: Any
    ) -> CommandResult:
        sent = {COMMAND: id or secrets.token_hex(8), **(headers or {})}
        ask = partial(
            self._ask, CommandResult, "POST", path, headers=sent, timeout=WORK_TIMEOUT, **request
        )
        try:
            return ask()
        except Unavailable:
            return ask()


def _path(job: str, rest: str = "") -> str:
    return f"/v1/jobs/{quote(job, safe='')}{rest}"
