"""The one table of the server's routes.

Each says the operation that it is and the object that it is about, which is all that a decision on
who may do what needs. tests/server/test_routes.py asks each, tests/docs/test_complete.py compares
them with docs/server.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import Response

from headrace.api.body import JSON
from headrace.api.routes import BodyKind, Parameter
from headrace.api.shapes import Accepted, Alive, Limit
from headrace.server import handlers
from headrace.server.commands import Done
from headrace.server.handlers import Desk
from headrace.server.package import MEDIA
from headrace.server.shapes import Catalog, DomainStatus, Jobs, JobStatus, Logs, Versions
from headrace.serving.answer import Answer


@dataclass(frozen=True, slots=True)
class ServerRoute:
    method: Literal["GET", "POST"]
    path: str
    name: str
    summary: str
    operation: str  # what is done
    object: str  # to what; parts of the path stand in it as in the path
    handler: Callable[[Desk, Request], Awaitable[Response]]
    response: Any = Any
    media: str = JSON
    parameters: tuple[Parameter, ...] = ()
    bodies: tuple[BodyKind, ...] = ()
    body_required: bool = True


_JOB = Parameter("job", "path", str, "name of a job")
_PLACE = (
    Parameter("cores", "query", int, "cores of its Spark"),
    Parameter("memory", "query", str, "memory of its driver, such as 2g"),
    Parameter("pool", "query", str, "Spark pool of the server"),
    Parameter("tags", "query", str, "what the server must have, with commas between"),
)
_PROJECT = (BodyKind(MEDIA, bytes),)


def _switch(verb: str, summary: str) -> ServerRoute:
    return ServerRoute(
        "POST", f"/v1/jobs/{{job}}/{verb}", f"{verb}_job", summary, verb, "job:{job}",
        handlers.switch, Done, parameters=(_JOB,),
    )  # fmt: skip


def _passing(method: Literal["GET", "POST"], operation: str) -> ServerRoute:
    return ServerRoute(
        method, "/v1/jobs/{job}/api/{path:path}", f"pass_on_{method.lower()}",
        "Any route of the job itself; reads are answered from its store while it is down.",
        operation, "job:{job}", handlers.pass_on,
        parameters=(_JOB, Parameter("path", "path", str, "path of a route of the job")),
    )  # fmt: skip


ROUTES: tuple[ServerRoute, ...] = (
    ServerRoute(
        "POST", "/v1/streams/{stream}/events", "send_by_name",
        "Append events to a stream, whichever job it is of.",
        "send", "stream:{stream}", handlers.send_by_name, Accepted,
        parameters=(Parameter("stream", "path", str, "name of a stream"),),
    ),
    ServerRoute(
        "GET", "/v1/views/{view}", "view_by_name",
        "The rows of a view, whichever job it is of.",
        "read", "view:{view}", handlers.view_by_name, Answer,
        parameters=(Parameter("view", "path", str, "name of a view"),),
    ),
    _passing("GET", "read"),
    _passing("POST", "write"),
    ServerRoute(
        "GET", "/v1/jobs", "jobs", "All jobs, and how they are.",
        "read", "domain", handlers.list_jobs, Jobs,
    ),
    ServerRoute(
        "POST", "/v1/jobs", "submit_job",
        "Make a job of a project: a gzipped tar of what is in its folder. It is checked first.",
        "submit", "domain", handlers.submit, Done,
        parameters=(Parameter("name", "query", str, "name of the new job"), *_PLACE),
        bodies=_PROJECT,
    ),
    ServerRoute(
        "GET", "/v1/jobs/{job}", "job", "One job, and how it is.",
        "read", "job:{job}", handlers.show, JobStatus, parameters=(_JOB,),
    ),
    _switch("pause", "Stop a job until it is resumed; its store still answers reads."),
    _switch("resume", "Go on with a job that is paused."),
    _switch("restart", "Stop a job's process and start it anew; also one that has failed."),
    _switch("cancel", "Stop a job for good; its state and versions stay."),
    ServerRoute(
        "GET", "/v1/jobs/{job}/versions", "versions", "All versions of a job.",
        "read", "job:{job}", handlers.versions, Versions, parameters=(_JOB,),
    ),
    ServerRoute(
        "POST", "/v1/jobs/{job}/versions", "apply_version",
        "Check a project and make it the next version of a job.",
        "apply", "job:{job}", handlers.apply, Done,
        parameters=(_JOB, *_PLACE), bodies=_PROJECT,
    ),
    ServerRoute(
        "POST", "/v1/jobs/{job}/rollback", "rollback_job",
        "Make an earlier version the current one; the one before it, if none is named.",
        "apply", "job:{job}", handlers.rollback, Done,
        parameters=(_JOB, Parameter("version", "query", int, "number of a version")),
    ),
    ServerRoute(
        "GET", "/v1/jobs/{job}/logs", "logs", "The last lines of a job's log.",
        "read", "job:{job}", handlers.logs, Logs,
        parameters=(_JOB, Parameter("tail", "query", Limit, "lines wanted at most")),
    ),
    ServerRoute(
        "GET", "/v1/catalog/names", "names", "Every stream, view and rule, with its job.",
        "read", "domain", handlers.catalog, Catalog,
    ),
    ServerRoute(
        "GET", "/v1/domain", "domain", "The servers, what they have and what is in use.",
        "read", "domain", handlers.domain, DomainStatus,
    ),
    ServerRoute(
        "GET", "/livez", "alive", "Whether the server lives.",
        "live", "domain", handlers.alive, Alive,
    ),
    ServerRoute(
        "GET", "/openapi.json", "openapi", "This table as an OpenAPI document.",
        "live", "domain", handlers.openapi, dict[str, Any],
    ),
)  # fmt: skip
