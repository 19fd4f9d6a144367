"""A server asked over HTTP, for the command line.

A command that got no answer is sent once more with the same id, so that a line that breaks does not
make two of it. tests/server/test_client.py checks it against a real server.
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

from headrace.api.client import TOKEN_VARIABLE, WORK_TIMEOUT, Remote
from headrace.api.tls import trusting, with_paths
from headrace.core.errors import Unavailable
from headrace.run.lock import running_token, running_url
from headrace.server.commands import CommandResult
from headrace.server.handlers import COMMAND
from headrace.server.home import Home, found_home
from headrace.server.package import MEDIA
from headrace.server.settings import load_server_settings
from headrace.server.shapes import Jobs, JobStatus, Logs, Versions
from headrace.server.wish import Wish

SERVER = "HEADRACE_SERVER"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server answers, to which token; of one of this machine also its certificate."""

    url: str
    token: str | None = None
    certificate: str = ""

    def open(self) -> ServerRemote:
        return ServerRemote(self.url, self.token, verify=self._verify)

    def open_job(self, job: str) -> Remote:
        """One job of the server, as a project that runs is asked."""
        return JobRemote(self.url.rstrip("/") + _path(job, "/api"), self.token, verify=self._verify)

    @property
    def _verify(self) -> ssl.SSLContext | None:
        return trusting(self.certificate) if self.certificate else None


def found_server(url: str | None, home: Path | None) -> Address:
    """The server that was named, by --server or $HEADRACE_SERVER, else the one of the home. Whoever
    says a token means that one; else it is the one that lies in the home.
    """
    token = os.environ.get(TOKEN_VARIABLE)
    if named := url or ("" if home else os.environ.get(SERVER)):
        return Address(named, token)
    found = Home(found_home(home))
    if (running := running_url(found.layout)) is None:
        raise Unavailable(
            f"no server runs in {found.folder}",
            hint="start it with `headrace serve`, or name one with --server or HEADRACE_SERVER.",
        )
    certificate = ""
    if running.startswith("https:"):
        http = load_server_settings(found.settings).http
        certificate = with_paths(http, found.folder).tls_cert
    return Address(running, token or running_token(found.layout), certificate)


class JobRemote(Remote):
    """A job of a server."""

    starts_with = "headrace serve"


class ServerRemote(Remote):
    """A server of jobs at a URL."""

    starts_with = "headrace serve"

    def jobs(self) -> Jobs:
        return self._ask(Jobs, "GET", "/v1/jobs")

    def job(self, job: str) -> JobStatus:
        return self._ask(JobStatus, "GET", _path(job))

    def versions(self, job: str) -> Versions:
        return self._ask(Versions, "GET", _path(job, "/versions"))

    def logs(self, job: str, lines: int) -> list[str]:
        return self._ask(Logs, "GET", _path(job, "/logs"), params={"tail": lines}).lines

    def submit_job(
        self, job: str, project: bytes, wish: Wish, id: str | None = None
    ) -> CommandResult:
        return self._bring("/v1/jobs", {"name": job}, project, wish, id)

    def apply(self, job: str, project: bytes, wish: Wish, id: str | None = None) -> CommandResult:
        return self._bring(_path(job, "/versions"), {}, project, wish, id)

    def rollback(self, job: str, version: int | None, id: str | None = None) -> CommandResult:
        params = {} if version is None else {"version": version}
        return self._command(_path(job, "/rollback"), id, params=params)

    def switch(self, job: str, verb: str, id: str | None = None) -> CommandResult:
        return self._command(_path(job, f"/{verb}"), id)

    def _bring(
        self, path: str, params: dict[str, Any], project: bytes, wish: Wish, id: str | None
    ) -> CommandResult:
        said = {"cores": wish.cores, "memory": wish.memory, "pool": wish.pool}
        said["tags"] = ",".join(wish.tags) if wish.tags is not None else None
        given = params | {name: value for name, value in said.items() if value is not None}
        media = {"Content-Type": MEDIA}
        return self._command(path, id, params=given, content=project, headers=media)

    def _command(
        self, path: str, id: str | None, headers: dict[str, str] | None = None, **request: Any
    ) -> CommandResult:
        said = {COMMAND: id or secrets.token_hex(8), **(headers or {})}
        ask = partial(
            self._ask, CommandResult, "POST", path, headers=said, timeout=WORK_TIMEOUT, **request
        )
        try:
            return ask()
        except Unavailable:
            return ask()


def _path(job: str, rest: str = "") -> str:
    return f"/v1/jobs/{quote(job, safe='')}{rest}"
