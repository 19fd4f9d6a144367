"""The one table of the server's routes.

Each says what it needs, of the job that it is about. tests/server/test_routes.py asks each,
tests/server/test_needs.py as each role, tests/docs/test_complete.py compares them with
docs/server.md.
"""

from __future__ import annotations

from typing import Any, Literal

from headrace.access.operation import Operation
from headrace.api.access_routes import ACCESS_ROUTES
from headrace.api.needs import FOR_KNOWN, JOB, OPEN, SERVER, Need, reads
from headrace.api.page import PAGE_ROUTES
from headrace.api.route import STREAM, VIEW, BodyKind, Parameter, Route
from headrace.api.shapes import Accepted, Alive, Limit
from headrace.server import handlers
from headrace.server.commands import CommandResult
from headrace.server.handlers import Desk
from headrace.server.package import MEDIA
from headrace.server.shapes import CatalogNames, DomainStatus, Jobs, JobStatus, Logs, Versions
from headrace.serving.answer import Answer

_JOB = Parameter("job", "path", str, "name of a job")
_PLACE = (
    Parameter("cores", "query", int, "cores of its Spark"),
    Parameter("memory", "query", str, "memory of its driver, such as 2g"),
    Parameter("pool", "query", str, "Spark pool of the server"),
    Parameter("tags", "query", str, "what the server must have, with commas between"),
)
_PROJECT = (BodyKind(MEDIA, bytes),)


_SUBMITS = Need(JOB, Operation.SUBMIT)


def _switch(verb: str, operation: Operation, summary: str) -> Route[Desk]:
    return Route(
        "POST", f"/v1/jobs/{{job}}/{verb}", f"{verb}_job", summary,
        handlers.switch, CommandResult, parameters=(_JOB,),
        needs=Need(JOB, operation),
    )  # fmt: skip


def _passing(method: Literal["GET", "POST"]) -> Route[Desk]:
    # What it needs is what the job's own route needs.
    return Route(
        method, "/v1/jobs/{job}/api/{path:path}", f"pass_on_{method.lower()}",
        "Any route of the job itself; reads are answered from its store while it is down.",
        handlers.pass_on, Any,
        parameters=(_JOB, Parameter("path", "path", str, "path of a route of the job")),
        needs=FOR_KNOWN,
    )  # fmt: skip


ROUTES: tuple[Route[Desk], ...] = (
    Route(
        "POST", "/v1/streams/{stream}/events", "send_by_name",
        "Append events to a stream, whichever job it is of.",
        handlers.send_by_name, Accepted, parameters=(STREAM,),
        needs=Need("stream", Operation.SEND),
    ),
    Route(
        "GET", "/v1/views/{view}", "view_by_name",
        "The rows of a view, whichever job it is of.",
        handlers.view_by_name, Answer, parameters=(VIEW,),
        needs=reads("view"),
    ),
    Route(
        "GET", "/v1/jobs/{job}/api", "job_console",
        "The console of a job, at this address with a slash behind it.",
        handlers.job_console, media="text/html", status=308, parameters=(_JOB,),
        needs=OPEN,
    ),
    _passing("GET"),
    _passing("POST"),
    Route(
        "GET", "/v1/jobs", "jobs", "All jobs that one may read, and how they are.",
        handlers.list_jobs, Jobs,
        needs=FOR_KNOWN,
    ),
    Route(
        "POST", "/v1/jobs", "submit_job",
        "Make a job of a project: a gzipped tar of what is in its folder. It is checked first.",
        handlers.submit, CommandResult,
        parameters=(Parameter("name", "query", str, "name of the new job"), *_PLACE),
        bodies=_PROJECT,
        needs=_SUBMITS,
    ),
    Route(
        "GET", "/v1/jobs/{job}", "job", "One job, and how it is.",
        handlers.show, JobStatus, parameters=(_JOB,),
        needs=reads(JOB),
    ),
    _switch(
        "pause", Operation.RESTART, "Stop a job until it is resumed; its store still answers reads."
    ),
    _switch("resume", Operation.RESTART, "Go on with a job that is paused."),
    _switch(
        "restart",
        Operation.RESTART,
        "Stop a job's process and start it anew; also one that has failed.",
    ),
    _switch("cancel", Operation.CANCEL, "Stop a job for good; its state and versions stay."),
    Route(
        "GET", "/v1/jobs/{job}/versions", "versions", "All versions of a job.",
        handlers.versions, Versions, parameters=(_JOB,),
        needs=reads(JOB),
    ),
    Route(
        "POST", "/v1/jobs/{job}/versions", "apply_version",
        "Check a project and make it the next version of a job.",
        handlers.apply, CommandResult,
        parameters=(_JOB, *_PLACE), bodies=_PROJECT,
        needs=_SUBMITS,
    ),
    Route(
        "POST", "/v1/jobs/{job}/rollback", "rollback_job",
        "Make an earlier version the current one; the one before it, if none is named.",
        handlers.rollback, CommandResult,
        parameters=(_JOB, Parameter("version", "query", int, "number of a version")),
        needs=_SUBMITS,
    ),
    Route(
        "GET", "/v1/jobs/{job}/logs", "logs", "The last lines of a job's log.",
        handlers.logs, Logs,
        parameters=(_JOB, Parameter("tail", "query", Limit, "lines wanted at most")),
        needs=reads(JOB),
    ),
    Route(
        "GET", "/v1/catalog/names", "names",
        "Every stream, view and rule that one may read, with its job.",
        handlers.catalog, CatalogNames,
        needs=FOR_KNOWN,
    ),
    Route(
        "GET", "/v1/domain", "domain", "The servers, what they have and what is in use.",
        handlers.domain, DomainStatus,
        needs=reads(SERVER),
    ),
    *ACCESS_ROUTES,
    Route(
        "GET", "/livez", "alive", "Whether the server lives.",
        handlers.alive, Alive,
        needs=OPEN,
    ),
    Route(
        "GET", "/metrics", "metrics", "Counters and gauges of the server for Prometheus.",
        handlers.metrics, media="text/plain",
        needs=reads(SERVER),
    ),
    Route(
        "GET", "/openapi.json", "openapi", "This table as an OpenAPI document.",
        handlers.openapi, dict[str, Any],
        needs=OPEN,
    ),
    *PAGE_ROUTES,
)  # fmt: skip
