"""What each route of the server does: read the request, ask the office, write the answer.

What may block runs in threads; checks of projects have their own, so that however many wait, jobs
are still listed. tests/server/test_routes.py checks each on a real server.
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
from headrace.access.audit_log import By
from headrace.access.caller import Caller
from headrace.access.operation import Operation, Role
from headrace.access.user import LOCAL
from headrace.api.access_routes import ACCESS_ROUTES
from headrace.api.asking import JOB, by, caller, recognised, target_of
from headrace.api.body import read_body
from headrace.api.door import Door
from headrace.api.guard import POLICY, SANDBOX
from headrace.api.handlers import (
    METRICS_MEDIA,
    Api,
    json_response,
    parameters,
)
from headrace.api.needs import ANYBODY, FOR_KNOWN, NAMED, Need
from headrace.api.page import PAGE_ROUTES
from headrace.api.route import Route
from headrace.api.ruling import who
from headrace.api.shapes import LIMIT_MAX, Alive
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
from headrace.server.commands import Command, CommandResult, checked_id
from headrace.server.home import checked_name
from headrace.server.job_routes import JobRoutes
from headrace.server.line import Ask, Passed
from headrace.server.meters import COMMANDS, DONE, REFUSED
from headrace.server.office import Office
from headrace.server.package import too_large
from headrace.server.resting import ANSWERED, Answers
from headrace.server.settings import SubmitSettings
from headrace.server.watcher import SILENT
from headrace.server.wish import Wish

COMMAND = "Idempotency-Key"
LINES = 100
PREFIX_PARTS = 4  # /v1/jobs/{job}/api


@dataclass(frozen=True, slots=True)
class Desk:
    """What the handlers share."""

    office: Office
    access: Access
    http: HttpSettings
    limits: SubmitSettings
    answers: Answers
    openapi: bytes = b"{}"
    console: Console = field(default_factory=load)
    job_routes: JobRoutes = field(default_factory=JobRoutes)
    job_doors: dict[str, Door] = field(default_factory=dict)  # by the names of a job's routes
    quick: Threads = field(default_factory=lambda: Threads(QUICK_THREADS))
    slow: Threads = field(default_factory=lambda: Threads(SLOW_THREADS))


async def job_openapi(desk: Desk, request: Request) -> Response:
    """The routes of a job are known here, so they are told also while it is down."""
    return Response(desk.job_routes.openapi, media_type="application/json")


# Routes of a job that its server answers itself.
OWN: dict[str, Callable[[Desk, Request], Awaitable[Response]]] = {
    **{route.name: route.handler for route in ACCESS_ROUTES},
    **{route.name: route.handler for route in PAGE_ROUTES},
    "openapi": job_openapi,
}


async def list_jobs(desk: Desk, request: Request) -> Response:
    return json_response(await desk.quick.run(partial(desk.office.jobs, caller(request))))


async def submit(desk: Desk, request: Request) -> Response:
    name = parameters(request).get("name")
    if not name:
        raise BadRequest("the parameter name is missing", hint="?name=shop")
    response = await _brought(desk, request, checked_name(name), desk.office.domain.submit)
    await desk.quick.run(partial(_entrust, desk.access, name, by(request)))
    return response


def _entrust(access: Access, job: str, submitter: By) -> None:
    """Whoever submits a job may change and run it. `local` ends with the server, and may anyway."""
    if submitter.user != LOCAL:
        for role in (Role.DEVELOPER, Role.OPERATOR):
            access.grant(submitter.user, role, f"job:{job}", submitter)


async def apply(desk: Desk, request: Request) -> Response:
    return await _brought(desk, request, request.path_params["job"], desk.office.domain.apply)


async def _brought(
    desk: Desk, request: Request, job: str, bring: Callable[[Command, bytes, Wish], CommandResult]
) -> Response:
    """A project that was sent, as a version."""
    wish = _wish(parameters(request))
    try:
        body = (await read_body(request, desk.limits.bytes_max)).data
    except LimitReached as error:
        raise too_large(f"{desk.limits.bytes_max} bytes, packed", "bytes_max") from error
    verb = bring.__name__
    command = _command(request, verb, job, repr(wish).encode() + body)
    return await _answered(command, desk.slow, partial(bring, command, body, wish))


async def _answered(
    command: Command, threads: Threads, call: Callable[[], CommandResult]
) -> Response:
    """What became of a command, counted."""
    try:
        done = await threads.run(call)
    except HeadraceError:
        COMMANDS.labels(command.verb, REFUSED).inc()
        raise
    COMMANDS.labels(command.verb, DONE).inc()
    return json_response(done)


def _wish(asked: dict[str, str]) -> Wish:
    cores, tags = asked.get("cores"), asked.get("tags")
    return Wish(
        number_of("cores", cores) if cores is not None else None,
        asked.get("memory"),
        asked.get("pool"),
        [tag for tag in tags.split(",") if tag] if tags is not None else None,
    )


async def rollback(desk: Desk, request: Request) -> Response:
    said = parameters(request).get("version")
    number = number_of("version", said) if said is not None else None
    command = _command(request, "rollback", request.path_params["job"], repr(number).encode())
    call = partial(desk.office.domain.rollback, command, number)
    return await _answered(command, desk.slow, call)


async def switch(desk: Desk, request: Request) -> Response:
    """Pause, resume, restart or cancel: the last word of the path."""
    verb = request.scope["path"].rpartition("/")[2]
    command = _command(request, verb, request.path_params["job"])
    return await _answered(command, desk.quick, partial(desk.office.domain.switch, command))


async def show(desk: Desk, request: Request) -> Response:
    call = partial(desk.office.job, request.path_params["job"])
    return json_response(await desk.quick.run(call))


async def versions(desk: Desk, request: Request) -> Response:
    call = partial(desk.office.versions, request.path_params["job"])
    return json_response(await desk.quick.run(call))


async def logs(desk: Desk, request: Request) -> Response:
    lines = number_of("tail", parameters(request).get("tail", str(LINES)), 1, LIMIT_MAX)
    call = partial(desk.office.logs, request.path_params["job"], lines)
    return json_response(await desk.quick.run(call))


async def job_console(desk: Desk, request: Request) -> Response:
    """The page names its files relative to an address that ends with a slash."""
    return RedirectResponse(str(URL("api/").replace(query=request.url.query)), 308)


async def pass_on(desk: Desk, request: Request) -> Response:
    """To the job's own route, through the door that it has here."""
    route, inner = desk.job_routes.found("/" + request.path_params["path"], request)
    if route.name not in OWN:
        request.scope[POLICY] = SANDBOX
    return await desk.job_doors[route.name].answer(inner)


def open_job_doors(desk: Desk) -> None:
    """Put a door before each route of jobs, so that a request is asked here what it would be asked
    there, and what is refused is in the server's log.
    """
    for route in desk.job_routes.all:
        if (own := OWN.get(route.name)) is not None:
            opened = Door(desk.access, desk.quick, route, partial(own, desk))
        else:
            passed = partial(_passed_in, desk, route)
            opened = Door(desk.access, desk.quick, _at_the_server(route), passed)
        desk.job_doors[route.name] = opened


def _at_the_server(route: Route[Api]) -> Route[Api]:
    """Which rule an alert is of is known to the job alone, which asks again. And nobody unknown is
    told anything of a job.
    """
    if route.needs.on == "alert":
        return replace(route, needs=Need(NAMED, route.needs.operation))
    return replace(route, needs=FOR_KNOWN) if route.needs.on == ANYBODY else route


async def _passed_in(desk: Desk, route: Route[Api], request: Request) -> Response:
    target = target_of(request, PREFIX_PARTS)
    return await _passed(desk, request.scope[JOB], route, target, request)


async def view_by_name(desk: Desk, request: Request) -> Response:
    return await _by_name(desk, request, "view")


async def send_by_name(desk: Desk, request: Request) -> Response:
    return await _by_name(desk, request, "stream")


async def _by_name(desk: Desk, request: Request, kind: str) -> Response:
    """The same path of the job that has this name."""
    request.scope[POLICY] = SANDBOX
    job = await desk.quick.run(partial(desk.office.job_of, kind, request.path_params[kind]))
    route, inner = desk.job_routes.found(request.scope["path"], request)
    return await _passed(desk, job, route, target_of(request), inner)


async def _passed(
    desk: Desk, job: str, route: Route[Api], target: bytes, request: Request
) -> Response:
    """The job's answer; or, while it is down, what its store can answer."""
    asks = caller(request)
    try:
        reach = await desk.quick.run(partial(desk.office.reach, job))
    except NotFound:
        # Only who could read the whole of it is told that there is no such job.
        asks.check(Operation.READ, asks.whole_job)
        raise
    # A question need not wait for a job that does not answer; events may still get there.
    waits = reach.seen.state == SILENT and route.name in ANSWERED
    if reach.url is not None and not waits:
        ask = Ask(target, asks, partial(_still, desk.access, request, asks))
        answer = await desk.office.line.pass_on(job, reach.url, reach.key, request, ask)
        if answer is not None:
            await _note_refusal(desk, job, route, request, answer)
            return answer
    return await desk.answers.answer(job, reach.order, reach.seen, route, request)


async def _note_refusal(
    desk: Desk, job: str, route: Route[Api], request: Request, answer: Passed
) -> None:
    """Some of what one may do only the job can tell, such as which rule an alert is of. What it
    refuses is in the server's log too, where the users are.
    """
    if answer.status_code != Forbidden.http_status:
        return
    refused = audit_log.REFUSED, "the job refused it"
    note = partial(desk.access.log, by(request), route.name, f"job:{job}", *refused)
    try:
        await desk.quick.run(note)
    except BaseException:
        await answer.aclose()
        raise


def _still(access: Access, request: Request, asks: Caller) -> bool:
    """Whether the caller is known still, and may do what they might when they asked."""
    try:
        return recognised(access, request) == asks
    except Unauthenticated:
        return False


async def catalog(desk: Desk, request: Request) -> Response:
    return json_response(await desk.quick.run(partial(desk.office.catalog, caller(request))))


async def domain(desk: Desk, request: Request) -> Response:
    return json_response(await desk.quick.run(desk.office.status))


async def metrics(desk: Desk, request: Request) -> Response:
    return Response(await desk.quick.run(desk.office.metrics), media_type=METRICS_MEDIA)


async def alive(desk: Desk, request: Request) -> Response:
    return json_response(Alive(True))


async def openapi(desk: Desk, request: Request) -> Response:
    return Response(desk.openapi, media_type="application/json")


def _command(request: Request, verb: str, job: str, asked: bytes = b"") -> Command:
    """The command that a request is, with the id that its sender chose, or a new one."""
    command = Command(verb, job, who(request), asked)
    said = request.headers.get(COMMAND)
    return command if said is None else command.called(checked_id(said))


def number_of(name: str, text: str, least: int = 0, most: int = 10**9) -> int:
    """A whole number in a parameter; BadRequest if it is none."""
    # The length first: Python refuses to read a number of thousands of digits.
    if text.isascii() and text.isdecimal() and len(text) <= 10 and least <= int(text) <= most:
        return int(text)
    raise BadRequest(f"{name} must be a whole number from {least} to {most}, not '{text[:40]}'")
