"""`headrace submit`, `jobs`, `job`, `apply` and `rollback`: what a server's jobs are and become.

tests/cli/test_jobs.py reads the pages.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from headrace.cli.folder import loaded
from headrace.cli.report import Report, bad, dim, good, waiting, whole
from headrace.client.table import table
from headrace.client.words import second
from headrace.server.client import Address, found_server
from headrace.server.commands import CommandResult
from headrace.server.package import pack
from headrace.server.place import Place
from headrace.server.shapes import JobStatus, Versions
from headrace.server.wish import Wish

_HEADS = ("job", "state", "version", "owner", "place", "since", "deaths", "reason")
_VERSION_HEADS = ("version", "submitted", "by", "views", "streams", "rules")


def found(server: str | None, home: Path | None) -> Address:
    """The server that a command is about."""
    return found_server(server, home)


def wish(cores: int | None, memory: str | None, pool: str | None, tags: list[str] | None) -> Wish:
    return Wish(cores, memory, pool, tags or None)


def listed(at: Address) -> Report:
    with at.open() as server:
        jobs = server.jobs().jobs
    return Report({"jobs": jobs}, [job_table(jobs) if jobs else Text("no jobs")])


def job_table(jobs: list[JobStatus]) -> RenderableType:
    return table(*_HEADS, rows=[_row(job) for job in jobs], right=("version", "deaths"))


def _row(job: JobStatus) -> list[str | Text]:
    since = f"{second(job.changed_at)} UTC"
    place = _place_words(job.place)
    version, deaths = str(job.version), str(job.deaths)
    return [job.name, _state(job), version, job.owner, place, since, deaths, job.reason]


def _state(job: JobStatus) -> Text:
    if job.state == "failed":
        return bad(job.state)
    return good(job.state) if job.state == "running" else Text(job.state, style="yellow")


def _place_words(place: Place) -> str:
    where = place.pool or f"{place.cores} {'core' if place.cores == 1 else 'cores'}"
    return ", ".join([where, place.memory, *place.tags])


def shown(at: Address, job: str) -> Report:
    with at.open() as server:
        status, versions = server.job(job), server.versions(job)
    parts = [job_table([status]), "", _version_table(versions)]
    return Report({"job": status, **_versions_document(versions)}, parts)


def _versions_document(versions: Versions) -> dict[str, object]:
    return {"current": versions.current, "versions": versions.versions}


def _version_table(versions: Versions) -> RenderableType:
    rows = [
        [
            f"{v.number} (current)" if v.number == versions.current else str(v.number),
            f"{second(v.submitted_at)} UTC",
            v.submitted_by,
            *(", ".join(names) for names in (v.names.views, v.names.streams, v.names.rules)),
        ]
        for v in versions.versions
    ]
    return table(*_VERSION_HEADS, rows=rows)


def submit(at: Address, folder: Path, name: str | None, wish: Wish, id: str | None) -> Report:
    settings = loaded(folder).settings
    job, body = name or settings.name, pack(folder, settings.output)
    with at.open() as server, waiting("the server checks the project"):
        return _done(server.submit_job(job, body, wish, id))


def apply(at: Address, folder: Path, job: str, wish: Wish, id: str | None) -> Report:
    # What is wrong can be seen here, and need not be sent.
    body = pack(folder, loaded(folder).settings.output)
    with at.open() as server, waiting("the server checks the project"):
        return _done(server.apply(job, body, wish, id))


def rollback(at: Address, job: str, version: int | None, id: str | None) -> Report:
    with at.open() as server, waiting("the server checks the version"):
        return _done(server.rollback(job, version, id))


def switch(at: Address, job: str, verb: str, id: str | None) -> Report:
    with at.open() as server:
        return _done(server.switch(job, verb, id))


def _done(done: CommandResult) -> Report:
    job = done.job
    line = good(f"{done.verb} {job.name}: version {job.version} is to be {job.desired}")
    look = f"look: headrace job show {job.name}"
    return Report(done, [line, dim(f"  command {done.command}; {look}")])


def logs(at: Address, job: str, lines: int) -> Report:
    with at.open() as server:
        found = server.logs(job, lines)
    return Report({"lines": found}, [whole(line) for line in found])
