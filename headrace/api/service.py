"""What can be asked of a project, whether it runs here, runs elsewhere or does not run.

Three implement it: `run.instance.Instance` (running in this process), `api.client.Remote` (running
in another) and `run.offline.Offline` (stopped). The HTTP routes and the command line know only
this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

import msgspec

from headrace.ingest.intake import Receipt
from headrace.serving.answer import Answer
from headrace.serving.store import AuditResult


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


class ViewStatus(msgspec.Struct, frozen=True):
    name: str
    kind: str
    state: str  # live, building
    stream: str
    rows: int
    generation: int
    differences: int | None = None  # of the newest audit before promotion


class TableStatus(msgspec.Struct, frozen=True):
    """The version of a table that is in use: a short hash of its content."""

    name: str
    version: str
    loaded_at: str


class Status(msgspec.Struct, frozen=True):
    """Everything `headrace status` shows."""

    name: str
    state: str  # starting, running, degraded, stopping, stopped
    reason: str
    started_at: str | None
    url: str | None
    streams: list[StreamStatus]
    views: list[ViewStatus]
    tables: list[TableStatus] = []


class DeadLetter(msgspec.Struct, frozen=True):
    """An event that could not be read, with its bytes (as text where they are text)."""

    partition: int
    offset: int
    arrived_at: str
    reason: str
    raw: str


class Service(Protocol):
    def submit(self, stream: str, records: Sequence[bytes]) -> Future[Receipt]:
        """Append events to a stream's log; resolved after fsync. NotFound for an unknown stream."""

    def view(
        self,
        name: str,
        keys: Mapping[str, str] | None = None,
        *,
        since: str | None = None,
        until: str | None = None,
        limit: int | None = None,
    ) -> Answer:
        """A view's rows by key values and window range."""

    def sql(self, text: str, limit: int | None = None) -> Answer:
        """An ad-hoc query over views (from the store), or streams and tables (on Spark, fenced)."""

    def status(self) -> Status: ...

    def ready(self) -> tuple[bool, str]:
        """Whether questions can be answered, and if not, why."""

    def dead_letters(self, stream: str, limit: int = 100) -> list[DeadLetter]:
        """The newest dead letters of a stream."""

    def rebuild(self, view: str) -> dict[str, Any]:
        """Recompute a view from its whole history and swap it in.

        {"view", "generation", "rows", "differences"}
        """

    def audit(self, view: str | None = None) -> list[AuditResult]:
        """Compare answers with a second engine over the same events, up to the same position."""

    def metrics(self) -> bytes:
        """Prometheus text."""
