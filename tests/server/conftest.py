"""A domain whose jobs are stand-ins: real processes and signals, and no Spark."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx
import pytest
import structlog

from headrace.access.access import Access
from headrace.api.server import AppServer
from headrace.run.launch_spec import LaunchSpec
from headrace.run.lock import holder
from headrace.server.app import make_server_app
from headrace.server.commands import Command, CommandResult
from headrace.server.database import DomainDatabase
from headrace.server.domain import Domain
from headrace.server.home import Home
from headrace.server.job_supervisor import JobSnapshot, SupervisorContext
from headrace.server.package import pack
from headrace.server.proxy import JobProxy
from headrace.server.resources import ResourceRequest, ServerCapacity
from headrace.server.service import ServerService
from headrace.server.settings import ServerSettings, SubmitSettings, SuperviseSettings
from headrace.server.supervisor import Supervisor
from tests.access.users import bearer, token_of

PROGRAM = Path(__file__).with_name("stand_in.py")
SHOP = "CREATE STREAM clicks (n BIGINT);\nCREATE VIEW visitors AS SELECT 1;\n"
# As short as a busy machine allows; what is killed for silence says so in its own test.
QUICK = SuperviseSettings(
    pause_us=100_000, pause_max_us=400_000, deaths_max=3, stop_us=1_000_000, start_us=30_000_000
)


def stand_in(verb: str, spec: LaunchSpec) -> list[str]:
    return [sys.executable, "-S", "-E", str(PROGRAM), verb, spec.text()]


def make_project(folder: Path, sql: str = SHOP, behaviour: str | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "headrace.toml").write_text('name = "shop"\n')
    (folder / "shop.sql").write_text(sql)
    if behaviour:
        (folder / "behaviour").write_text(behaviour)
    return folder


@dataclass
class Site:
    """A domain with its supervisor, and short ways to use it."""

    context: SupervisorContext
    scratch: Path
    supervisor: Supervisor = field(init=False)
    domain: Domain = field(init=False)
    after: Site | None = None
    count: int = 0

    def __post_init__(self) -> None:
        self.supervisor = Supervisor(self.context)
        self.domain = Domain(self.context, SubmitSettings(), self.supervisor.supervise)

    def body(self, sql: str = SHOP, behaviour: str | None = None) -> bytes:
        self.count += 1
        return pack(make_project(self.scratch / f"project{self.count}", sql, behaviour))

    def submit(
        self, name: str = "shop", behaviour: str | None = None, **wish: int
    ) -> CommandResult:
        command = Command("submit", name, "ada")
        return self.domain.submit(command, self.body(behaviour=behaviour), ResourceRequest(**wish))

    def switch(self, verb: str, name: str = "shop") -> CommandResult:
        return self.domain.switch(Command(verb, name, "ada"))

    def snapshot(self, name: str = "shop") -> JobSnapshot:
        return self.supervisor.snapshot(name)

    def state(self, name: str = "shop") -> Path:
        return self.context.home.state(name).state

    def set_status(self, state: str, *problems: str, name: str = "shop") -> None:
        """Let a job have this status of its own; a problem is bad if the state is degraded."""
        level = "bad" if state == "degraded" else "warn"
        found = [
            {"kind": "flow", "name": "clicks", "what": str(n), "message": said, "level": level}
            for n, said in enumerate(problems)
        ]
        reason = "; ".join(problems) if level == "bad" else ""
        self.state(name).mkdir(parents=True, exist_ok=True)
        status = {"state": state, "reason": reason, "problems": found}
        (self.state(name) / "status").write_text(json.dumps(status))

    def starts(self, name: str = "shop") -> list[list[str]]:
        """Of each start so far: pid, turn, version."""
        path = self.state(name) / "starts"
        lines = path.read_text().splitlines() if path.is_file() else []
        return [line.split() for line in lines]

    def again(self) -> Site:
        """Another server on the same domain, after this one is gone."""
        self.supervisor.stop()
        self.after = Site(self.context, self.scratch)
        return self.after

    def end(self) -> None:
        """Kill all jobs, and let the kernel forget those that are our children."""
        self.supervisor.stop()
        kill_jobs(self.context.home)
        for watcher in self.supervisor._supervisors.values():
            if watcher._child is not None:
                watcher._child.kill()
                watcher._child.wait()
        if self.after is not None:
            self.after.end()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A domain's folder; whatever runs in it is killed at the end."""
    home = Home(tmp_path / "home")
    yield home
    kill_jobs(home)


def kill_jobs(home: Home) -> None:
    for folder in home.folder.glob("jobs/*"):
        found = holder(home.state(folder.name))
        if found is not None and found.pid:
            os.kill(found.pid, signal.SIGKILL)


@pytest.fixture
def make_site(home: Home, tmp_path: Path) -> Iterator[Callable[..., Site]]:
    sites: list[Site] = []
    line = JobProxy()

    def make(room: ServerCapacity | None = None, **settings: int) -> Site:
        supervise = replace(QUICK, **settings)
        room = room or ServerCapacity(4, 8 << 30, ["ssd"], {"big": "spark://big:7077"})
        context = SupervisorContext(
            home, DomainDatabase(home.database), supervise, room, stand_in, line
        )
        sites.append(Site(context, tmp_path))
        return sites[-1]

    yield make
    for site in sites:
        site.end()
    line.close()


@pytest.fixture
def journal_closed() -> Iterator[None]:
    """For what keeps a journal in this process: nothing of it is left behind."""
    yield
    if file := getattr(structlog.get_config()["logger_factory"], "_file", None):
        file.close()
    structlog.reset_defaults()


@pytest.fixture
def access(tmp_path: Path) -> Iterator[Access]:
    """The users of the domain."""
    sites = Access(tmp_path / "access.db", "")
    yield sites
    sites.close()


@pytest.fixture
def token(access: Access) -> str:
    """The token of ada, who may do everything."""
    return token_of(access, "ada", "admin")


@pytest.fixture
def site(make_site: Callable[..., Site]) -> Site:
    return make_site()


@contextmanager
def serving(
    site: Site, access: Access, token: str, settings: ServerSettings
) -> Iterator[httpx.Client]:
    """The routes of the server over a site, and one who asks them with a token."""
    service = ServerService(site.domain, site.supervisor, site.context.proxy)
    server = AppServer(make_server_app(service, settings, access), settings.http)
    server.start()
    user = bearer(token)
    with httpx.Client(base_url=server.url, trust_env=False, timeout=60, headers=user) as client:
        yield client
    server.stop()
