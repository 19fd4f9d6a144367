"""What a job answers while its process is not there: reads, from its store, by this server.

The routes are the job's own and so are the answers; only the state in the status is the server's.
Who asks has come through the route's door at the server.
Whatever would write, run the project's code or start Spark is refused, with the time to try again
if the job is on its way back. tests/server/test_resting.py asks a job that is down.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from headrace.access.access import Access
from headrace.access.caller import OWNER, Caller
from headrace.api.asking import caller
from headrace.api.door import rule_of
from headrace.api.handlers import Api
from headrace.api.limits import Gate, Limits, overloaded
from headrace.api.observed.catalog import Catalog
from headrace.api.route import Route
from headrace.api.service import Status
from headrace.api.threads import QUICK_THREADS, SLOW_THREADS, FairThreads, Threads
from headrace.core.errors import HeadraceError, Restarting, Unavailable
from headrace.define.project import Project
from headrace.define.settings import AccessSettings, HttpSettings
from headrace.run.observatory.catalog import catalog_of
from headrace.run.observatory.observatory import StoreObservatory
from headrace.run.offline import Offline
from headrace.run.order import Order
from headrace.run.reading import reads
from headrace.server.watcher import SILENT, Seen
from headrace.serving.answer import Answer

ANSWERED = frozenset({
    "read_view", "late", "query", "status", "rules", "rule", "rule_history", "watches", "watch",
    "alerts", "alert", "dead_letters", "topology", "catalog", "lineage", "quality", "epochs",
    "about_view", "events",
})  # fmt: skip
JOB_STATE = "X-Headrace-Job"
_COMING = frozenset({"starting", "running", SILENT, "restarting", "stopping"})


def shown_state(seen: Seen) -> str:
    """The state of a job whose process was not reached."""
    return "restarting" if _coming(seen) else seen.state


def _coming(seen: Seen) -> bool:
    return seen.state in _COMING and seen.back


def down(job: str, seen: Seen) -> HeadraceError:
    """Why a job cannot do what only its process could."""
    detail = "nothing of this request was accepted."
    if _coming(seen):
        return Restarting(
            f"job '{job}' is {'starting' if seen.state == 'starting' else 'restarting'}",
            detail=f"{seen.reason}; {detail}" if seen.reason else detail,
            hint="send it again after the time in Retry-After.",
        )
    return Unavailable(
        f"job '{job}' is {seen.state}",
        detail=f"{seen.reason}; {detail}" if seen.reason else detail,
        hint=f"`headrace job show {job}` says more.",
    )


class RestingObservatory(StoreObservatory):
    """Looks at a store, and runs nothing of the project."""

    def catalog(self) -> Catalog:
        """Without the functions of functions.py: who they are is known when it is run."""
        subject = self.subject
        return catalog_of(subject.project, subject.deployed(), subject.store, ())


class Resting(Offline):
    """The store of a job, to be read."""

    def __init__(self, project: Project, seen: Seen) -> None:
        super().__init__(project)
        self.observatory = RestingObservatory(self)
        self._seen = seen

    def sql(
        self, text: str, limit: int | None = None, id: str | None = None, caller: Caller = OWNER
    ) -> Answer:
        """Of views alone: streams are Spark's."""
        _, plan = self.questions.readable(text, caller)
        return self.questions.reader.sql(text, limit, readable=partial(reads, caller, plan))

    def status(self) -> Status:
        said = super().status()
        return replace(said, state=shown_state(self._seen), reason=self._seen.reason)


class Answers:
    """The routes of a job that its store can answer."""

    def __init__(self, http: HttpSettings, access: Access, limits: AccessSettings) -> None:
        self._http, self._gate = http, Gate(http.waiting_max, overloaded)
        self._access, self._limits = access, Limits(limits)
        self._threads: dict[str, Any] = {
            "quick": Threads(QUICK_THREADS),
            "slow": Threads(SLOW_THREADS),
            "queries": FairThreads(),
        }

    async def answer(
        self, job: str, order: Order, seen: Seen, route: Route[Api], asked: Request
    ) -> Response:
        """The answer that the job would give, or why there is none."""
        if route.name not in ANSWERED or not Path(order.state, "serving.db").is_file():
            raise down(job, seen)
        response = await self._ask(route, order, seen, asked)
        response.headers[JOB_STATE] = shown_state(seen)
        return response

    async def _ask(self, route: Route[Api], order: Order, seen: Seen, asked: Request) -> Response:
        service = await self._threads["quick"].run(lambda: Resting(order.project(), seen))
        try:
            shared = self._access, self._gate, self._limits
            api = Api(service, self._http, *shared, **self._threads)
            await _check_alert(api, route, asked)
            return await route.handler(api, asked)
        finally:
            service.close()


async def _check_alert(api: Api, route: Route[Api], asked: Request) -> None:
    """Which rule an alert is of could not be asked before the store was open."""
    if route.needs.on == "alert":
        asks = caller(asked)
        rule = await rule_of(api, asked.path_params["alert"], asks)
        asks.check(route.needs.operation, rule)
