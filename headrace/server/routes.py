"""The one table of the server's routes.

Each has the permission that it needs in its job. tests/server/test_routes.py requests each,
tests/server/test_needs.py as each role, tests/docs/test_complete.py compares them with
docs/server.md.
"""

from __future__ import annotations

from typing import Any, Literal

from headrace.access.operation import Operation
from headrace.api.access_routes import ACCESS_ROUTES
from headrace.api.needs import ANY_USER, JOB, OPEN, SERVER, Need, reads
from headrace.api.page import PAGE_ROUTES
from headrace.api.parameter import Limit, Parameter
from headrace.api.route import STREAM, VIEW, BodyKind, Route
from headrace.api.shapes import Liveness, SendReceipt
from headrace.server import handlers
from headrace.server.commands import CommandResult
from headrace.server.handlers import ServerApi
from headrace.server.package import MEDIA
from headrace.server.shapes import (
    CatalogNames,
    DomainStatus,
    JobList,
    JobStatus,
    LogLines,
    VersionList,
)
from headrace.serving.answer import Answer

_JOB = Parameter("job", "path", str, "name of a job")
_PLACE = (
    Parameter("cores", "query", int, "cores of its Spark"),
    Parameter("memory", "query", str, "memory of its driver, such as 2g"),
    Parameter("pool", "query", str, "Spark pool of the server"),
    Parameter("tags", "query", str, "tags that the server must have, comma-separated"),
)
_PROJECT = (BodyKind(MEDIA, bytes),)


_SUBMITS = Need(JOB, Operation.SUBMIT)


def _switch(verb: str, operation: Operation, summary: str) -> Route[ServerApi]:
    return Route(
        "POST", f"/v1/jobs/{{job}}/{verb}", f"{verb}_job", summary,
        handlers.switch, CommandResult, parameters=(_JOB,),
        needs=Need(JOB, operation),
    )  # fmt: skip


def _forwarding(method: Literal["GET", "POST"]) -> Route[ServerApi]:
    # The job's own route has the permission that it needs.
    return Route(
        method, "/v1/jobs/{job}/api/{path:path}", f"pass_on_{method.lower()}",
        "Any route of the job itself; reads are answered from its store while it is down.",
        handlers.forward, Any,
        parameters=(_JOB, Parameter("path", "path", str, "path of a route of the job")),
        needs=ANY_USER,
    )  # fmt: skip


ROUTES: tuple[Route[ServerApi], ...] = (
    Route(
        "POST", "/v1/streams/{stream}/events", "send_by_name",
        "Append events to a stream of any job, by its name.",
        handlers.send_by_name, SendReceipt, parameters=(STREAM,),
        needs=Need("stream", Operation.SEND),
    ),
    Route(
        "GET", "/v1/views/{view}", "view_by_name",
        "The rows of a view of any job, by its name.",
        handlers.view_by_name, Answer, parameters=(VIEW,),
        needs=reads("view"),
    ),
    Route(
        "GET", "/v1/jobs/{job}/api", "job_console",
        "Redirects to the console of a job.",
        handlers.job_console, media="text/html", status=308, parameters=(_JOB,),
        needs=OPEN,
    ),
    _forwarding("GET"),
    _forwarding("POST"),
    Route(
        "GET", "/v1/jobs", "jobs", "All jobs that the caller may read, with their state.",
        handlers.list_jobs, JobList,
        needs=ANY_USER,
    ),
    Route(
        "POST", "/v1/jobs", "submit_job",
        "Create a job from a project: a gzipped tar of its folder's content. It is checked first.",
        handlers.submit, CommandResult,
        parameters=(Parameter("name", "query", str, "name of the new job"), *_PLACE),
        bodies=_PROJECT,
        needs=_SUBMITS,
    ),
    Route(
        "GET", "/v1/jobs/{job}", "job", "One job, with its state.",
        handlers.show, JobStatus, parameters=(_JOB,),
        needs=reads(JOB),
    ),
    _switch(
        "pause", Operation.RESTART, "Stop a job until it is resumed; its store still answers reads."
    ),
    _switch("resume", Operation.RESTART, "Resume a paused job."),
    _switch(
        "restart",
        Operation.RESTART,
        "Restart a job's process; also one that has failed.",
    ),
    _switch("cancel", Operation.CANCEL, "Stop a job permanently; its state and versions are kept."),
    Route(
        "GET", "/v1/jobs/{job}/versions", "versions", "All versions of a job.",
        handlers.versions, VersionList, parameters=(_JOB,),
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
        "Make an earlier version the current one; by default the previous one.",
        handlers.rollback, CommandResult,
        parameters=(_JOB, Parameter("version", "query", int, "number of a version")),
        needs=_SUBMITS,
    ),
    Route(
        "GET", "/v1/jobs/{job}/logs", "logs", "The last lines of a job's log.",
        handlers.logs, LogLines,
        parameters=(_JOB, Parameter("tail", "query", Limit, "maximum number of lines")),
        needs=reads(JOB),
    ),
    Route(
        "GET", "/v1/catalog/names", "names",
        "Every stream, view and rule that the caller may read, with its job.",
        handlers.catalog, CatalogNames,
        needs=ANY_USER,
    ),
    Route(
        "GET", "/v1/domain", "domain", "The servers, with their capacity and its use.",
        handlers.domain, DomainStatus,
        needs=reads(SERVER),
    ),
    *ACCESS_ROUTES,
    Route(
        "GET", "/livez", "alive", "Liveness: whether the server responds.",
        handlers.alive, Liveness,
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
