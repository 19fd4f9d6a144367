"""All that is known of one view, on one page."""

from __future__ import annotations

from typing import Literal

import msgspec

from headrace.api.observed.catalog import CatalogColumn, ViewVersion
from headrace.serving.store import AuditResult


class Freshness(msgspec.Struct, frozen=True):
    """How far the answer has come in one flow of events."""

    stream: str
    position: list[int]
    boundary: list[int]
    end: list[int]  # of the log
    generation: int
    lag_events: int
    lag_ms: int | None  # how long the oldest event that is not in the answer has waited
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


class Rebuild(msgspec.Struct, frozen=True):
    """What a rebuild of the view has to do, and how far one is that was asked for."""

    state: Literal["idle", "waiting", "running"]
    asked_at: str | None
    started_at: str | None
    events: int  # of its whole history
    expected_ms: int | None  # by the largest build of this run; None: none has told yet


class About(msgspec.Struct, frozen=True):
    name: str
    kind: str
    sql: str
    origin: str
    explain: str
    versions: list[ViewVersion]
    columns: list[CatalogColumn]
    freshness: list[Freshness]  # one for each flow that it reads, itself or through other views
    audit: AuditResult | None  # of the newest generation
    audited_at: str | None
    late: LateSummary | None  # None: it has no windows of event time
    reads: list[str]
    touches: list[str]  # what depends on it
    rebuild: Rebuild | None = None  # None: it cannot be rebuilt now
