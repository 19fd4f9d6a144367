"""One view: its definition, versions, freshness, last audit and rebuild."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec.structs import replace

from headrace.access.caller import Caller
from headrace.api import needs
from headrace.api.get_request import Endpoint, GetRequest, RequestHandler
from headrace.api.read_access import may_read_all
from headrace.api.resources.catalog import CatalogColumn, CatalogRequest, ViewVersion
from headrace.serving.store import AuditResult


class Freshness(msgspec.Struct, frozen=True):
    """The progress of the answer in one flow of events."""

    stream: str
    position: list[int]
    boundary: list[int]
    end: list[int]  # of the log
    generation: int
    lag_events: int
    lag_ms: int | None  # waiting time of the oldest event that is not in the answer
    watermark: str | None
    watermark_gap_ms: int | None
    committed_at: str | None
    promoted_at: str | None


class LateSummary(msgspec.Struct, frozen=True):
    """The lateness of all windows of the view, or of the newest `windows`."""

    windows: int
    on_time: int
    late: int
    absorbed: int
    waiting: int
    late_by_max_ms: float | None
    truncated: bool


class RebuildProgress(msgspec.Struct, frozen=True):
    """The size of a rebuild of the view, and the progress of a requested one."""

    state: Literal["idle", "waiting", "running"]
    asked_at: str | None
    started_at: str | None
    events: int  # of its whole history
    expected_ms: int | None  # by the largest build of this run; None: there was none yet


class ViewDetail(msgspec.Struct, frozen=True):
    name: str
    kind: str
    sql: str
    origin: str
    explain: str
    versions: list[ViewVersion]
    columns: list[CatalogColumn]
    freshness: list[Freshness]  # one for each flow that it reads, directly or through other views
    audit: AuditResult | None  # of the newest generation
    audited_at: str | None
    late: LateSummary | None  # None: it has no windows of event time
    reads: list[str]
    touches: list[str]  # what depends on it
    rebuild: RebuildProgress | None = None  # None: it cannot be rebuilt now


class ViewDetailRequest(GetRequest[ViewDetail], frozen=True):
    """A view: its definition, versions, freshness, last audit and rebuild."""

    endpoint = Endpoint("/v1/views/{view}/about", "about_view", needs.reads("view"), stored=True)
    view: Annotated[str, "name of a view"]

    def readable(self, service: RequestHandler, caller: Caller) -> ViewDetail:
        """Dependents that the caller may not read are left out."""
        about = service.ask(self)
        if may_read_all(caller):
            return about
        seen = CatalogRequest().readable(service, caller).names
        return replace(about, touches=[name for name in about.touches if name in seen])
