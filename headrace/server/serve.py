"""`headrace serve` from beginning to end.

What is there is found: jobs that run are watched, those that should and
do not are started. The end of the server, by a signal or by kill -9, ends no job.
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
from headrace.api.tls import exposed, with_paths
from headrace.core.errors import AlreadyRunning
from headrace.core.paths import hide_paths
from headrace.core.report import Report
from headrace.core.time import now_us
from headrace.define.settings import LogSettings
from headrace.run.journal import keep_journal
from headrace.run.lock import RunLock, running_url
from headrace.server.app import make_server_app
from headrace.server.database import Database
from headrace.server.domain import Domain
from headrace.server.home import Home
from headrace.server.line import Line
from headrace.server.office import Office
from headrace.server.place import Room
from headrace.server.process import CommandLine, job_command
from headrace.server.settings import ServerSettings, load_server_settings
from headrace.server.supervisor import Supervisor
from headrace.server.watcher import Tools

SERVER = "server"  # who speaks in its journal


def serve(
    folder: Path,
    *,
    port: int | None,
    wait: Callable[[], object],
    report: Report = lambda kind, fields: None,
    command: CommandLine = job_command,
) -> None:
    """Serve a domain until `wait` returns; `report` is told the address, a link that logs a
    browser in once, and at the first start the token of the first user.
    """
    home = Home(folder.resolve())
    settings = load_server_settings(home.settings)
    settings = replace(settings, http=with_paths(settings.http, home.folder))
    if port is not None:
        settings = replace(settings, http=replace(settings.http, port=port))
    # What is in it is the jobs' alone: their events, and what they are told.
    home.layout.make_state()
    with _locked(home) as lock:
        hide_paths(home.folder)
        keep_journal(home.layout, SERVER, LogSettings())
        shutil.rmtree(home.incoming, ignore_errors=True)
        with _access(home, settings) as access, _served(home, settings, access, command) as url:
            lock.announce(url, token := begin_run(access))
            login = f"{url}/#login={access.code(token)}"
            report("serving", {"url": url, "login": login, "home": str(home.folder)})
            if first := first_token(access):
                report("first_token", {"user": ADMIN, "token": first})
            if exposed(settings.http):
                report("exposed", {"host": settings.http.host})
            wait()


@contextmanager
def _access(home: Home, settings: ServerSettings) -> Iterator[Access]:
    """The users of the domain. The server is no job, so a grant on a job is none on the server."""
    access = Access(home.layout.access, "", policy=policy_of(settings.access))
    try:
        yield access
    finally:
        end_run(access)
        access.close()


@contextmanager
def _locked(home: Home) -> Iterator[RunLock]:
    lock = RunLock(home.layout)
    try:
        lock.take()
    except AlreadyRunning as error:
        url = running_url(home.layout)
        raise AlreadyRunning(
            f"a server of {home.folder} is already running" + (f" at {url}" if url else ""),
            hint="use that one, or give another folder with --home.",
        ) from error
    try:
        yield lock
    finally:
        lock.release()


@contextmanager
def _served(
    home: Home, settings: ServerSettings, access: Access, command: CommandLine
) -> Iterator[str]:
    database, line, room = Database(home.database), Line(), Room.of(settings.room)
    tools = Tools(home, database, settings.supervise, room, command, line)
    supervisor = Supervisor(tools)
    office = Office(Domain(tools, settings.submit, supervisor.watch), supervisor, line)
    server = AppServer(make_server_app(office, settings, access), settings.http)
    server.start()
    try:
        _note_instance(database, room, server.url)
        supervisor.start()
        yield server.url
    finally:
        office.domain.stop()
        server.stop()
        supervisor.stop()
        line.close()


def _note_instance(database: Database, room: Room, url: str) -> None:
    said = socket.gethostname(), url, os.getpid(), msgspec.json.encode(room).decode(), now_us()
    with database.write() as db:
        # A home has one server at a time; another name is that of an earlier machine or container.
        db.execute("DELETE FROM instances")
        db.execute("INSERT INTO instances VALUES (?, ?, ?, ?, ?)", said)
