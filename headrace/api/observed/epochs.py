"""The newest epochs and generations: how the answers came to where they are."""

from __future__ import annotations

import msgspec

from headrace.serving.store import AuditResult

EPOCHS_LISTED = 100


class EpochShape(msgspec.Struct, frozen=True):
    """One committed micro-batch of speed: the events [lower, upper) of each partition."""

    number: int
    stream: str
    lower: list[int]
    upper: list[int]
    events: int
    late: int
    duplicates: int
    dead_letters: int
    started_at: str
    committed_at: str
    ms: float
    phases: dict[str, int] | None = None  # milliseconds of each, where Spark still knows them


class GenerationShape(msgspec.Struct, frozen=True):
    """One promoted build of batch."""

    stream: str
    number: int
    boundary: list[int]
    events: int | None  # since the boundary before; None if that is no longer known
    at: str
    audits: list[AuditResult]


class Epochs(msgspec.Struct, frozen=True):
    """The newest first, of each."""

    epochs: list[EpochShape]
    generations: list[GenerationShape]
