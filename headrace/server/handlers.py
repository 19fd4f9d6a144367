"""The handlers of the server's routes: decode the request, call the service, encode the response.

Blocking calls run in threads; checks of projects have a pool of their own, so that waiting checks
do not delay other requests. tests/server/test_routes.py checks each on a real server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial

from starlette.datastructures import URL
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from headrace.access import audit_log
from headrace.access.access import Access
from headrace.access.audit_log import Actor
from headrace.access.caller import Caller
from headrace.access.operation import Operation, Role
from headrace.access.user import LOCAL
from headrace.api.access_routes import ACCESS_ROUTES
from headrace.api.authentication import JOB, actor_of, authenticate, caller_of, request_target
from headrace.api.authorization import AuthorizedEndpoint
from headrace.api.body import read_body
from headrace.api.handlers import METRICS_MEDIA, Api, json_response, query_parameters
from headrace.api.needs import ANY_USER, NAMED, PUBLIC, Need
from headrace.api.page import PAGE_ROUTES
from headrace.api.parameter import LIMIT_MAX, number_of
from headrace.api.route import Route
from headrace.api.rule_handlers import user_of
from headrace.api.security import POLICY, SANDBOX
from headrace.api.shapes import Liveness
from headrace.api.threads import QUICK_THREADS, SLOW_THREADS, Threads
from headrace.console import Console, load
from headrace.core.errors import (
    BadRequest,
    Forbidden,
    HeadraceError,
    LimitReached,
    NotFound,
    Unauthenticated,
)
from headrace.define.settings import HttpSettings
from headrace.server.commands import Command, CommandResult, check_id
from headrace.server.home import check_name
from headrace.server.job_routes import JobRoutes
from headrace.server.job_supervisor import SILENT
from headrace.server.meters import COMMANDS, DONE, REFUSED
from headrace.server.package import too_large
from headrace.server.proxy import ProxiedResponse, ProxyRequest
from headrace.server.resources import ResourceRequest
from headrace.server.service import ServerService
from headrace.server.settings import SubmitSettings
from headrace.server.stopped_job import StoppedJobHandler

COMMAND = "Idempotency-Key"
LINES = 100
_COUNT_MAX = 10**9
PREFIX_PARTS = 4  # /v1/jobs/{job}/api


@dataclass(frozen=True, slots=True)
class ServerApi:
    """The context of the handlers."""

    service: ServerService
    access: Access
    http: HttpSettings
    limits: SubmitSettings
    stopped_jobs: StoppedJobHandler
    openapi: bytes = b"{}"
    console: Console = field(default_factory=load)
    job_routes: JobRoutes = field(default_factory=JobRoutes)
    # By the names of a job's routes.
    job_endpoints: dict[str, AuthorizedEndpoint] = field(default_factory=dict)
    quick: Threads = field(default_factory=lambda: Threads(QUICK_THREADS))
    slow: Threads = field(default_factory=lambda: Threads(SLOW_THREADS))


async def job_openapi(api: ServerApi, request: Request) -> Response:
    """The routes of a job, also while it is down."""
    return Response(api.job_routes.openapi, media_type="application/json")


# Handlers of routes of a job that the server answers itself.
SERVER_HANDLERS: dict[str, Callable[[ServerApi, Request], Awaitable[Response]]] = {
    **{route.name: route.handler for route in ACCESS_ROUTES},
    **{route.name: route.handler for route in PAGE_ROUTES},
    "openapi": job_openapi,
}


async def list_jobs(api: ServerApi, request: Request) -> Response:
    return json_response(await api.quick.run(partial(api.service.jobs, caller_of(request))))


async def submit(api: ServerApi, request: Request) -> Response:
    name = query_parameters(request).get("name")
    if not name:
        raise BadRequest("the parameter name is missing", hint="?name=shop")
    response = await _submit_version(api, request, check_name(name), api.service.domain.submit)
    await api.quick.run(partial(_grant_submitter, api.access, name, actor_of(request)))
    return response


def _grant_submitter(access: Access, job: str, submitter: Actor) -> None:
    """Let the submitter change and run the job. `local` is an admin, and ends with the server."""
    if submitter.user != LOCAL:
        for role in (Role.DEVELOPER, Role.OPERATOR):
            access.add_grant(submitter.user, role, f"job:{job}", submitter)


async def apply(api: ServerApi, request: Request) -> Response:
    return await _submit_version(api, request, request.path_params["job"], api.service.domain.apply)


async def _submit_version(
    api: ServerApi,
    request: Request,
    job: str,
    submit_version: Callable[[Command, bytes, ResourceRequest], CommandResult],
) -> Response:
    """Read the project of a request and submit it as a version."""
    resources = _resource_request(query_parameters(request))
    try:
        body = (await read_body(request, api.limits.bytes_max)).data
    except LimitReached as error:
        raise too_large(f"{api.limits.bytes_max} bytes, packed", "bytes_max") from error
    verb = submit_version.__name__
    command = _command(request, verb, job, repr(resources).encode() + body)
    return await _run_command(command, api.slow, partial(submit_version, command, body, resources))


async def _run_command(
    command: Command, threads: Threads, call: Callable[[], CommandResult]
) -> Response:
    """Run a command and count its result."""
    try:
        done = await threads.run(call)
    except HeadraceError:
        COMMANDS.labels(command.verb, REFUSED).inc()
        raise
    COMMANDS.labels(command.verb, DONE).inc()
    return json_response(done)


def _resource_request(parameters: dict[str, str]) -> ResourceRequest:
    cores, tags = parameters.get("cores"), parameters.get("tags")
    return ResourceRequest(
        number_of("cores", cores, 0, _COUNT_MAX) if cores is not None else None,
        parameters.get("memory"),
        parameters.get("pool"),
        [tag for tag in tags.split(",") if tag] if tags is not None else None,
    )


async def rollback(api: ServerApi, request: Request) -> Response:
    text = query_parameters(request).get("version")
    number = number_of("version", text, 0, _COUNT_MAX) if text is not None else None
    command = _command(request, "rollback", request.path_params["job"], repr(number).encode())
    call = partial(api.service.domain.rollback, command, number)
    return await _run_command(command, api.slow, call)


async def switch(api: ServerApi, request: Request) -> Response:
    """Pause, resume, restart or cancel: the last word of the path."""
    verb = request.scope["path"].rpartition("/")[2]
    command = _command(request, verb, request.path_params["job"])
    return await _run_command(command, api.quick, partial(api.service.domain.switch, command))


async def show(api: ServerApi, request: Request) -> Response:
    call = partial(api.service.job, request.path_params["job"])
    return json_response(await api.quick.run(call))


async def versions(api: ServerApi, request: Request) -> Response:
    call = partial(api.service.versions, request.path_params["job"])
    return json_response(await api.quick.run(call))


async def logs(api: ServerApi, request: Request) -> Response:
    lines = number_of("tail", query_parameters(request).get("tail", str(LINES)), 1, LIMIT_MAX)
    call = partial(api.service.logs, request.path_params["job"], lines)
    return json_response(await api.quick.run(call))


async def job_console(api: ServerApi, request: Request) -> Response:
    """The page names its files relative to an address that ends with a slash."""
    return RedirectResponse(str(URL("api/").replace(query=request.url.query)), 308)


async def forward(api: ServerApi, request: Request) -> Response:
    """Authorize a request by the job's own route, and forward it."""
    route, inner = api.job_routes.match("/" + request.path_params["path"], request)
    if route.name not in SERVER_HANDLERS:
        request.scope[POLICY] = SANDBOX
    return await api.job_endpoints[route.name].handle(inner)


def authorize_job_routes(api: ServerApi) -> None:
    """Create the endpoint of each route of jobs, so that the server authorizes a request as the job
    does, and logs refusals.
    """
    for route in api.job_routes.all:
        if (server_handler := SERVER_HANDLERS.get(route.name)) is not None:
            job_endpoint = AuthorizedEndpoint(
                api.access, api.quick, route, partial(server_handler, api)
            )
        else:
            forwarded = partial(_forward_job_route, api, route)
            job_endpoint = AuthorizedEndpoint(
                api.access, api.quick, _server_route(route), forwarded
            )
        api.job_endpoints[route.name] = job_endpoint


def _server_route(route: Route[Api]) -> Route[Api]:
    """The route as the server authorizes it. Only the job knows the rule of an alert, and
    authorizes again. All routes of a job require a user.
    """
    if route.needs.on == "alert":
        return replace(route, needs=Need(NAMED, route.needs.operation))
    return replace(route, needs=ANY_USER) if route.needs.on == PUBLIC else route


async def _forward_job_route(api: ServerApi, route: Route[Api], request: Request) -> Response:
    target = request_target(request, PREFIX_PARTS)
    return await _forward_or_read_store(api, request.scope[JOB], route, target, request)


async def view_by_name(api: ServerApi, request: Request) -> Response:
    return await _by_name(api, request, "view")


async def send_by_name(api: ServerApi, request: Request) -> Response:
    return await _by_name(api, request, "stream")


async def _by_name(api: ServerApi, request: Request, kind: str) -> Response:
    """Forward to the same path of the job that has this name."""
    request.scope[POLICY] = SANDBOX
    job = await api.quick.run(partial(api.service.job_of, kind, request.path_params[kind]))
    route, inner = api.job_routes.match(request.scope["path"], request)
    return await _forward_or_read_store(api, job, route, request_target(request), inner)


async def _forward_or_read_store(
    api: ServerApi, job: str, route: Route[Api], target: bytes, request: Request
) -> Response:
    """The job's response; or, while it is down, the response from its store."""
    caller = caller_of(request)
    try:
        upstream = await api.quick.run(partial(api.service.upstream, job))
    except NotFound:
        # Only a caller who could read the whole job learns that it does not exist.
        caller.check(Operation.READ, caller.whole_job)
        raise
    # A read need not wait for a job without heartbeat; events may still reach it.
    waits = upstream.snapshot.state == SILENT and route.stored
    if upstream.url is not None and not waits:
        proxy_request = ProxyRequest(
            target, caller, partial(_still_allowed, api.access, request, caller)
        )
        answer = await api.service.proxy.forward(
            job, upstream.url, upstream.key, request, proxy_request
        )
        if answer is not None:
            await _log_refusal(api, job, route, request, answer)
            return answer
    return await api.stopped_jobs.answer(job, upstream.spec, upstream.snapshot, route, request)


async def _log_refusal(
    api: ServerApi, job: str, route: Route[Api], request: Request, answer: ProxiedResponse
) -> None:
    """Log a refusal of the job in the server's audit log, where the users are. Some permissions
    only the job can check, such as those of an alert's rule.
    """
    if answer.status_code != Forbidden.http_status:
        return
    refused = audit_log.REFUSED, "the job refused the request"
    log = partial(api.access.log, actor_of(request), route.name, f"job:{job}", *refused)
    try:
        await api.quick.run(log)
    except BaseException:
        await answer.aclose()
        raise


def _still_allowed(access: Access, request: Request, caller: Caller) -> bool:
    """Whether the caller is still valid and has the same permissions."""
    try:
        return authenticate(access, request) == caller
    except Unauthenticated:
        return False


async def catalog(api: ServerApi, request: Request) -> Response:
    return json_response(await api.quick.run(partial(api.service.catalog, caller_of(request))))


async def domain(api: ServerApi, request: Request) -> Response:
    return json_response(await api.quick.run(api.service.status))


async def metrics(api: ServerApi, request: Request) -> Response:
    return Response(await api.quick.run(api.service.metrics), media_type=METRICS_MEDIA)


async def alive(api: ServerApi, request: Request) -> Response:
    return json_response(Liveness(True))


async def openapi(api: ServerApi, request: Request) -> Response:
    return Response(api.openapi, media_type="application/json")


def _command(request: Request, verb: str, job: str, payload: bytes = b"") -> Command:
    """The command of a request, with the id of its header Idempotency-Key, or a new one."""
    command = Command(verb, job, user_of(request), payload)
    id = request.headers.get(COMMAND)
    return command if id is None else command.with_id(check_id(id))
