"""The interface of a project, whether it runs in this process, in another one, or is stopped.

Three classes implement it: `run.instance.Instance` (running in this process),
`api.client.RemoteService` (running in another) and `run.offline.Offline` (stopped). The HTTP routes
and the command line use only this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Protocol

import msgspec

from headrace.access.caller import OWNER, Caller
from headrace.access.object import Object
from headrace.api.get_request import A, GetRequest
from headrace.api.resources.query import QueryPlan
from headrace.api.rule_service import RuleService
from headrace.api.watch_service import WatchService
from headrace.ingest.intake import Outcome, Receipt, Requests
from headrace.serving.answer import Answer
from headrace.serving.conditions import Keys
from headrace.serving.store import AuditResult
from headrace.serving.subscriber import OpenSubscription


class RebuildResult(msgspec.Struct, frozen=True):
    """A view after its rebuild."""

    view: str
    generation: int | None  # None: there was nothing to build
    rows: int
    differences: int | None  # rows that differ from those served before; None: not compared


class Service(Protocol):
    @property
    def rule_service(self) -> RuleService:
        """Rules and alerts."""

    @property
    def watch_service(self) -> WatchService:
        """Watches."""

    def ask(self, request: GetRequest[A]) -> A:
        """The response to a GET request type."""

    def live(
        self, topics: Sequence[str], news: Callable[[], None] = lambda: None
    ) -> OpenSubscription:
        """Subscribe to topics: the state of each now and after each change; `news` is called when
        there is one. The topics are status, topology, alerts, and view:NAME.
        """

    def submit(self, stream: str, records: Sequence[bytes]) -> Future[Receipt]:
        """Append events to a stream's log; resolved after fsync. NotFound for an unknown stream."""

    def import_part(self, stream: str, part: str) -> Receipt:
        """Append a part of an import that was staged beside a stream's log, and wait until it is
        durable. A part is taken once.
        """

    def sql(
        self, text: str, limit: int | None = None, id: str | None = None, caller: Caller = OWNER
    ) -> Answer:
        """An ad-hoc query over views (from the store), or streams and tables (on Spark);
        Forbidden if the caller may not read each of them.
        """

    def cancel(self, id: str, caller: Caller = OWNER) -> bool:
        """Cancel the caller's query with this id, or for user managers any query; False if none is
        running.
        """

    def query_plan(self, text: str, caller: Caller = OWNER) -> QueryPlan:
        """The plan of a query, which is not run. Forbidden as for `sql`."""

    def subscribed(self, text: str, caller: Caller) -> Object:
        """The view or stream of a subscription; the whole job if it does not exist, so that only
        callers who may read everything learn that.
        """

    def subscribe(
        self,
        text: str,
        after: str | None = None,
        news: Callable[[], None] = lambda: None,
        caller: Caller = OWNER,
    ) -> OpenSubscription:
        """Subscribe to a view's panes or a stream's rows after that id; `news` is called when there
        are some. What Spark computes of them waits for its turn among the caller's queries.
        """

    def ready(self) -> tuple[bool, str]:
        """Whether queries can be answered, and if not, why."""

    def rebuild(self, view: str) -> RebuildResult:
        """Recompute a view from its whole history and swap it in."""

    def audit(self, view: str | None = None) -> list[AuditResult]:
        """Compare answers with a second engine over the same events, up to the same position."""

    def metrics(self) -> bytes:
        """Prometheus text."""


# The outcome of each request, once they are durable: see headrace/ingest/intake.py.
Sender = Callable[[Requests], Future[list[Outcome]]]


class LocalService(Service, Protocol):
    """A service in this process."""

    def row(self, name: str, keys: Keys) -> Answer | None:
        """A view's row with these key values, if that needs no blocking call."""

    def sender(self, stream: str) -> Sender:
        """What appends requests to a stream's log together; NotFound for an unknown stream."""
