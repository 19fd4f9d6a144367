"""What can be asked of a project, whether it runs here, runs elsewhere or does not run.

Three implement it: `run.instance.Instance` (running in this process), `api.client.Remote` (running
in another) and `run.offline.Offline` (stopped). The HTTP routes and the command line know only
this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Literal, Protocol

import msgspec

from headrace.access.caller import OWNER, Caller
from headrace.access.object import Object
from headrace.api.observatory import Observatory
from headrace.api.observed.asking import QueryPlan
from headrace.api.rulebook import Rulebook, RuleStatus
from headrace.api.watchbook import Watchbook
from headrace.audit.trace import LISTED, Replay, Why
from headrace.ingest.intake import Receipt
from headrace.serving.answer import Answer
from headrace.serving.conditions import Keys
from headrace.serving.hearer import Hearing
from headrace.serving.late import LateAnswer
from headrace.serving.store import AuditResult
from headrace.serving.watches import WatchNumbers


class Balance(msgspec.Struct, frozen=True):
    """accepted = events + duplicates + dead letters + in the log; `off` must be zero."""

    accepted: int
    events: int
    duplicates: int
    dead_letters: int
    in_log: int  # accepted, not yet archived

    @property
    def off(self) -> int:
        return self.accepted - self.events - self.duplicates - self.dead_letters - self.in_log


class IdlePartition(msgspec.Struct, frozen=True):
    """A partition that does not hold the watermark back, because nothing comes from it."""

    partition: int
    since: str


class StreamStatus(msgspec.Struct, frozen=True):
    """How one stream is doing. Positions are one offset a partition."""

    name: str
    source: str
    end: list[int]  # of the log
    position: list[int]  # of speed
    archived: list[int]
    boundary: list[int]  # of batch
    generation: int
    lag_events: int  # between the log's end and speed
    late: int
    watermark: str | None
    balance: Balance
    last_epoch_ms: int | None = None
    problem: str | None = None
    watermark_gap_ms: int | None = None  # now less the watermark
    watermark_held_by: int | None = None  # the slowest partition of those that are not idle
    idle: list[IdlePartition] = []
    shed: int = 0  # passed over by speed since the beginning; batch counts them
    age_ms: int | None = None  # since the newest epoch was committed
    trigger_ms: int | None = None  # between the starts of two epochs


class ViewStatus(msgspec.Struct, frozen=True):
    name: str
    kind: str
    state: str  # live, building
    stream: str
    rows: int
    generation: int
    differences: int | None = None  # of the newest audit before promotion


class SinkStatus(msgspec.Struct, frozen=True):
    """How far one sink has come. Numbers are those of panes."""

    name: str
    view: str
    into: str  # file out/x.jsonl, stream alerts
    guarantee: str
    sequence: int  # of the newest pane
    delivered: int
    waiting: int
    dropped: int  # changes of windows that were closed


class TableStatus(msgspec.Struct, frozen=True):
    """The version of a table that is in use: a short hash of its content."""

    name: str
    version: str
    loaded_at: str


class Problem(msgspec.Struct, frozen=True):
    """What is wrong: with a place, as `speed:clicks`, or with a part of the run, as `schedule`."""

    about: str
    message: str
    level: Literal["warn", "bad"]  # slow or behind, or failing


class Status(msgspec.Struct, frozen=True):
    """Everything `headrace status` shows."""

    name: str
    state: str  # starting, running, degraded, stopping, stopped
    reason: str
    started_at: str | None
    url: str | None
    streams: list[StreamStatus]
    views: list[ViewStatus]
    sinks: list[SinkStatus] = []
    tables: list[TableStatus] = []
    rules: list[RuleStatus] = []
    watches: WatchNumbers | None = None
    problems: list[Problem] = []


class DeadLetter(msgspec.Struct, frozen=True):
    """An event that could not be read, with its bytes (as text where they are text)."""

    partition: int
    offset: int
    arrived_at: str
    reason: str
    raw: str


class DeadLetters(msgspec.Struct, frozen=True):
    """The newest dead letters of a stream, and how many there are."""

    dead_letters: list[DeadLetter]
    total: int


class Rebuilt(msgspec.Struct, frozen=True):
    """A view after its rebuild."""

    view: str
    generation: int | None  # None: there was nothing to build
    rows: int
    differences: int | None  # rows that are not what was served before; None: not compared


class Service(Protocol):
    @property
    def rulebook(self) -> Rulebook:
        """Rules and alerts."""

    @property
    def watchbook(self) -> Watchbook:
        """Watches."""

    @property
    def observatory(self) -> Observatory:
        """What is seen of the project as a whole."""

    def submit(self, stream: str, records: Sequence[bytes]) -> Future[Receipt]:
        """Append events to a stream's log; resolved after fsync. NotFound for an unknown stream."""

    def view(
        self,
        name: str,
        keys: Keys | None = None,
        *,
        since: str | None = None,
        until: str | None = None,
        limit: int | None = None,
        order: str | None = None,
    ) -> Answer:
        """A view's rows by key values and window range, in an order such as "-hits"."""

    def late(
        self,
        name: str,
        keys: Keys | None = None,
        *,
        since: str | None = None,
        until: str | None = None,
        limit: int | None = None,
    ) -> LateAnswer:
        """How late the events of a view's windows were, and which generation absorbed them."""

    def sql(
        self, text: str, limit: int | None = None, id: str | None = None, caller: Caller = OWNER
    ) -> Answer:
        """An ad-hoc query over views (from the store), or streams and tables (on Spark, fenced);
        Forbidden if the caller may not read each of them.
        """

    def cancel(self, id: str, caller: Caller = OWNER) -> bool:
        """Stop the caller's query of this id, or anybody's for one who manages users; False if none
        such runs.
        """

    def query_plan(self, text: str, caller: Caller = OWNER) -> QueryPlan:
        """How a query would be answered; it is not run. Forbidden as for `sql`."""

    def subscribed(self, text: str, caller: Caller) -> Object:
        """The view or stream that a subscription is about; where there is neither, the whole job,
        so that only those who may read all are told so.
        """

    def subscribe(
        self, text: str, after: str | None = None, news: Callable[[], None] = lambda: None
    ) -> Hearing:
        """Hear a view's panes or a stream's rows, from after that id on; `news` is called when some
        have come.
        """

    def status(self) -> Status: ...

    def ready(self) -> tuple[bool, str]:
        """Whether questions can be answered, and if not, why."""

    def dead_letters(self, stream: str, limit: int = 100) -> DeadLetters:
        """The newest dead letters of a stream."""

    def rebuild(self, view: str) -> Rebuilt:
        """Recompute a view from its whole history and swap it in."""

    def audit(self, view: str | None = None) -> list[AuditResult]:
        """Compare answers with a second engine over the same events, up to the same position."""

    def why(
        self,
        view: str,
        keys: Keys | None = None,
        *,
        window: str | None = None,
        limit: int = LISTED,
    ) -> Why:
        """The events behind the row with these keys and window start, and those left out."""

    def replay(
        self,
        view: str,
        keys: Keys | None = None,
        *,
        window: str | None = None,
        limit: int = LISTED,
    ) -> Replay:
        """How that row came about, epoch by epoch and generation by generation."""

    def metrics(self) -> bytes:
        """Prometheus text."""
