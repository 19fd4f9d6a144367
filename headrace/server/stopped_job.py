"""Answers reads of a job whose process is not running, from its store, in the server.

The routes and handlers are those of the job; only the state in the status is the server's. The
server has authorized the caller already. Requests that would write, run the project's code or start
Spark are refused, with Retry-After if the job is restarting. tests/server/test_stopped_job.py
requests a job that is down.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from headrace.access.access import Access
from headrace.access.caller import OWNER, Caller
from headrace.api.authentication import caller_of
from headrace.api.authorization import rule_of_alert
from headrace.api.handlers import Api
from headrace.api.limits import ConcurrencyLimit, UserLimits, overloaded
from headrace.api.resources.status import ProjectStatus
from headrace.api.route import Route
from headrace.api.threads import QUICK_THREADS, SLOW_THREADS, FairThreads, Threads
from headrace.core.errors import HeadraceError, Restarting, Unavailable
from headrace.define.functions import FunctionDefinition
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.define.settings import AccessSettings, HttpSettings
from headrace.run.launch_spec import LaunchSpec
from headrace.run.offline import Offline
from headrace.run.read_permission import can_read
from headrace.server.job_supervisor import SILENT, JobSnapshot
from headrace.serving.answer import Answer
from headrace.serving.opening import store_exists

JOB_STATE = "X-Headrace-Job"
_RESTARTING = frozenset({"starting", "running", "degraded", SILENT, "restarting", "stopping"})


def reported_state(snapshot: JobSnapshot) -> str:
    """The state of a job whose process could not be reached."""
    return "restarting" if _restarting(snapshot) else snapshot.state


def _restarting(snapshot: JobSnapshot) -> bool:
    return snapshot.state in _RESTARTING and snapshot.restarts


def _has_store(spec: LaunchSpec) -> bool:
    return store_exists(Layout.of(spec.project()).store)


def unavailable(job: str, snapshot: JobSnapshot) -> HeadraceError:
    """The error of a request that only the job's process could answer."""
    detail = "nothing of this request was accepted."
    if _restarting(snapshot):
        return Restarting(
            f"job '{job}' is {'starting' if snapshot.state == 'starting' else 'restarting'}",
            detail=f"{snapshot.reason}; {detail}" if snapshot.reason else detail,
            hint="retry after the time in Retry-After.",
        )
    return Unavailable(
        f"job '{job}' is {snapshot.state}",
        detail=f"{snapshot.reason}; {detail}" if snapshot.reason else detail,
        hint=f"see `headrace job show {job}`.",
    )


class StoppedJobService(Offline):
    """The service of a job whose process is not running, over its store."""

    def __init__(self, project: Project, snapshot: JobSnapshot) -> None:
        super().__init__(project)
        self._snapshot = snapshot

    def sql(
        self, text: str, limit: int | None = None, id: str | None = None, caller: Caller = OWNER
    ) -> Answer:
        """Over views alone, because streams need Spark."""
        _, plan = self.query_service.readable(text, caller)
        readable = partial(can_read, caller, plan)
        return self.with_behind(self.query_service.reader.sql(text, limit, readable=readable))

    def functions(self) -> tuple[FunctionDefinition, ...]:
        """Empty: the functions of functions.py are known only when it is run."""
        return ()

    def status(self) -> ProjectStatus:
        status = super().status()
        return replace(status, state=reported_state(self._snapshot), reason=self._snapshot.reason)


class StoppedJobHandler:
    """Runs the handlers of a job's routes over its store."""

    def __init__(self, http: HttpSettings, access: Access, limits: AccessSettings) -> None:
        self._http, self._gate = http, ConcurrencyLimit(http.waiting_max, overloaded)
        self._access, self._limits = access, UserLimits(limits)
        self._threads: dict[str, Any] = {
            "quick": Threads(QUICK_THREADS),
            "slow": Threads(SLOW_THREADS),
            "queries": FairThreads(),
            "reads": FairThreads(),
        }

    async def answer(
        self, job: str, spec: LaunchSpec, snapshot: JobSnapshot, route: Route[Api], request: Request
    ) -> Response:
        """The response of the job's route, or the error that the job is down."""
        if not route.stored or not await self._threads["quick"].run(lambda: _has_store(spec)):
            raise unavailable(job, snapshot)
        response = await self._ask(route, spec, snapshot, request)
        response.headers[JOB_STATE] = reported_state(snapshot)
        return response

    async def _ask(
        self, route: Route[Api], spec: LaunchSpec, snapshot: JobSnapshot, request: Request
    ) -> Response:
        service = await self._threads["quick"].run(
            lambda: StoppedJobService(spec.project(), snapshot)
        )
        try:
            shared = self._access, self._gate, self._limits
            api = Api(service, self._http, *shared, **self._threads)
            await _check_alert(api, route, request)
            return await route.handler(api, request)
        finally:
            service.close()


async def _check_alert(api: Api, route: Route[Api], request: Request) -> None:
    """Authorize by the rule of an alert, which is known only now that the store is open."""
    if route.needs.on == "alert":
        caller = caller_of(request)
        rule = await rule_of_alert(api, request.path_params["alert"], caller)
        caller.check(route.needs.operation, rule)
