"""`headrace submit`, `jobs`, `job`, `apply` and `rollback`: show and change the jobs of a server.

tests/cli/test_jobs.py reads the pages.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from headrace.cli.folder import load
from headrace.cli.report import Report, bad, dim, good, spinner, unwrapped
from headrace.client.formats import timestamp_to_second
from headrace.client.table import table
from headrace.server.client import ServerAddress, find_server
from headrace.server.commands import CommandResult
from headrace.server.package import pack
from headrace.server.resources import JobResources, ResourceRequest
from headrace.server.shapes import JobStatus, VersionList

_HEADS = ("job", "state", "version", "owner", "place", "since", "deaths", "problems", "reason")
_NUMBERS = ("version", "deaths", "problems")
_FAILING = ("degraded", "silent", "failed")
_VERSION_HEADS = ("version", "submitted", "by", "views", "streams", "rules")


def server_address(server: str | None, home: Path | None) -> ServerAddress:
    """The server of a command."""
    return find_server(server, home)


def resource_request(
    cores: int | None, memory: str | None, pool: str | None, tags: list[str] | None
) -> ResourceRequest:
    return ResourceRequest(cores, memory, pool, tags or None)


def list_jobs(at: ServerAddress) -> Report:
    with at.open() as server:
        jobs = server.jobs().jobs
    return Report({"jobs": jobs}, [job_table(jobs) if jobs else Text("no jobs")])


def job_table(jobs: list[JobStatus]) -> RenderableType:
    return table(*_HEADS, rows=[_row(job) for job in jobs], right=_NUMBERS)


def _row(job: JobStatus) -> list[str | Text]:
    since = f"{timestamp_to_second(job.changed_at)} UTC"
    place = _resource_text(job.place)
    version, deaths, problems = str(job.version), str(job.deaths), str(job.problems)
    return [job.name, _state(job), version, job.owner, place, since, deaths, problems, job.reason]


def _state(job: JobStatus) -> Text:
    if job.state in _FAILING:
        return bad(job.state)
    well = job.state == "running" and not job.problems
    return good(job.state) if well else Text(job.state, style="yellow")


def _resource_text(place: JobResources) -> str:
    where = place.pool or f"{place.cores} {'core' if place.cores == 1 else 'cores'}"
    return ", ".join([where, place.memory, *place.tags])


def show_job(at: ServerAddress, job: str) -> Report:
    with at.open() as server:
        status, versions = server.job(job), server.versions(job)
    parts = [job_table([status]), "", _version_table(versions)]
    return Report({"job": status, **_versions_document(versions)}, parts)


def _versions_document(versions: VersionList) -> dict[str, object]:
    return {"current": versions.current, "versions": versions.versions}


def _version_table(versions: VersionList) -> RenderableType:
    rows = [
        [
            f"{v.number} (current)" if v.number == versions.current else str(v.number),
            f"{timestamp_to_second(v.submitted_at)} UTC",
            v.submitted_by,
            *(", ".join(names) for names in (v.names.views, v.names.streams, v.names.rules)),
        ]
        for v in versions.versions
    ]
    return table(*_VERSION_HEADS, rows=rows)


def submit(
    at: ServerAddress, folder: Path, name: str | None, resources: ResourceRequest, id: str | None
) -> Report:
    settings = load(folder).settings
    job, body = name or settings.name, pack(folder, settings.output)
    with at.open() as server, spinner("the server checks the project"):
        return _done(server.submit_job(job, body, resources, id))


def apply(
    at: ServerAddress, folder: Path, job: str, resources: ResourceRequest, id: str | None
) -> Report:
    # Loading finds errors before anything is sent.
    body = pack(folder, load(folder).settings.output)
    with at.open() as server, spinner("the server checks the project"):
        return _done(server.apply(job, body, resources, id))


def rollback(at: ServerAddress, job: str, version: int | None, id: str | None) -> Report:
    with at.open() as server, spinner("the server checks the version"):
        return _done(server.rollback(job, version, id))


def switch(at: ServerAddress, job: str, verb: str, id: str | None) -> Report:
    with at.open() as server:
        return _done(server.switch(job, verb, id))


def _done(done: CommandResult) -> Report:
    job = done.job
    line = good(f"{done.verb} {job.name}: version {job.version}, desired state {job.desired}")
    look = f"see: headrace job show {job.name}"
    return Report(done, [line, dim(f"  command {done.command}; {look}")])


def logs(at: ServerAddress, job: str, lines: int) -> Report:
    with at.open() as server:
        found = server.logs(job, lines)
    return Report({"lines": found}, [unwrapped(line) for line in found])
