"""`headrace serve` from beginning to end.

Running jobs are found and supervised, and jobs that should run are started. Jobs continue when the
server ends, by a signal or by kill -9.
tests/server/test_serve.py kills it, tests/server/test_story.py with real jobs.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec

from headrace.access.access import Access
from headrace.access.run import ADMIN, begin_run, end_run, first_token
from headrace.api.limits import policy_of
from headrace.api.server import AppServer
from headrace.api.tls import unencrypted, with_paths
from headrace.core.errors import AlreadyRunning
from headrace.core.paths import hide_paths
from headrace.core.report import Report
from headrace.core.time import now_us
from headrace.define.settings import LogSettings
from headrace.run.lock import RunLock, running_url
from headrace.run.log_file import log_to_file
from headrace.server.app import make_server_app
from headrace.server.database import DomainDatabase
from headrace.server.domain import Domain
from headrace.server.home import Home
from headrace.server.job_supervisor import SupervisorContext
from headrace.server.process import CommandLine, job_command
from headrace.server.proxy import JobProxy
from headrace.server.resources import ServerCapacity
from headrace.server.service import ServerService
from headrace.server.settings import ServerSettings, load_server_settings
from headrace.server.supervisor import Supervisor

SERVER = "server"  # name of the process in its log


def serve(
    folder: Path,
    *,
    port: int | None,
    wait: Callable[[], object],
    report: Report = lambda kind, fields: None,
    command: CommandLine = job_command,
) -> None:
    """Serve a domain until `wait` returns; `report` gets the URL, a login link that works once,
    and at the first start the token of the first user.
    """
    home = Home(folder.resolve())
    settings = load_server_settings(home.settings)
    settings = replace(settings, http=with_paths(settings.http, home.folder))
    if port is not None:
        settings = replace(settings, http=replace(settings.http, port=port))
    # The folder is private: it has the events and the secrets of jobs.
    home.layout.make_state()
    with _lock_home(home) as lock:
        hide_paths(home.folder)
        log_to_file(home.layout, SERVER, LogSettings())
        shutil.rmtree(home.incoming, ignore_errors=True)
        with _access(home, settings) as access, _serve_http(home, settings, access, command) as url:
            lock.announce(url, token := begin_run(access))
            login = f"{url}/#login={access.code(token)}"
            report("serving", {"url": url, "login": login, "home": str(home.folder)})
            if first := first_token(access):
                report("first_token", {"user": ADMIN, "token": first})
            if unencrypted(settings.http):
                report("exposed", {"host": settings.http.host})
            wait()


@contextmanager
def _access(home: Home, settings: ServerSettings) -> Iterator[Access]:
    """The users of the domain. A grant on a job does not include the server itself."""
    access = Access(home.layout.access, "", policy=policy_of(settings.access))
    try:
        yield access
    finally:
        end_run(access)
        access.close()


@contextmanager
def _lock_home(home: Home) -> Iterator[RunLock]:
    lock = RunLock(home.layout)
    try:
        lock.acquire()
    except AlreadyRunning as error:
        url = running_url(home.layout)
        raise AlreadyRunning(
            f"a server is already running in {home.folder}" + (f", at {url}" if url else ""),
            hint="use that server, or give another folder with --home.",
        ) from error
    try:
        yield lock
    finally:
        lock.release()


@contextmanager
def _serve_http(
    home: Home, settings: ServerSettings, access: Access, command: CommandLine
) -> Iterator[str]:
    database, proxy = DomainDatabase(home.database), JobProxy()
    capacity = ServerCapacity.of(settings.room)
    context = SupervisorContext(home, database, settings.supervise, capacity, command, proxy)
    supervisor = Supervisor(context)
    service = ServerService(
        Domain(context, settings.submit, supervisor.supervise), supervisor, proxy
    )
    server = AppServer(make_server_app(service, settings, access), settings.http)
    server.start()
    try:
        _note_instance(database, capacity, server.url)
        supervisor.start()
        yield server.url
    finally:
        service.domain.stop()
        server.stop()
        supervisor.stop()
        proxy.close()


def _note_instance(database: DomainDatabase, capacity: ServerCapacity, url: str) -> None:
    row = socket.gethostname(), url, os.getpid(), msgspec.json.encode(capacity).decode(), now_us()
    with database.write() as db:
        # A home has one server at a time; other rows are left from earlier machines or containers.
        db.execute("DELETE FROM instances")
        db.execute("INSERT INTO instances VALUES (?, ?, ?, ?, ?)", row)
