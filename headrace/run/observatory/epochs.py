"""Epochs and generations, the newest first, from the store.

tests/run/test_observatory.py reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from headrace.api.resources.epochs import EpochInfo, Epochs, EpochsRequest, GenerationInfo
from headrace.compile.flow import flows_of
from headrace.core.errors import NotFound
from headrace.core.position import Position
from headrace.core.time import iso
from headrace.run.observatory.observed_project import ObservedProject
from headrace.serving.history import (
    EpochRecord,
    GenerationRecord,
    count_epochs,
    read_epochs,
    read_generations,
)


def epochs_of(service: ObservedProject, request: EpochsRequest) -> Epochs:
    """The newest epochs and generations, of one flow or of all."""
    stream = None if request.stream is None else _flow(service, request.stream)
    with service.store.read() as db:
        epochs, total = list(read_epochs(db, stream, request.limit)), count_epochs(db, 0, stream)
        generations = list(_generations(list(read_generations(db, stream))))
    phases = {name: service.runtime_info().phases(name) for name in {e.stream for e in epochs}}
    return Epochs(
        [_epoch(e, phases[e.stream].get(e.range)) for e in epochs],
        generations[: request.limit],
        total,
        len(generations),
    )


def _flow(service: ObservedProject, name: str) -> str:
    """The flow of this name, in any case."""
    flows = [flow.name for flow in flows_of(service.deployed())]
    found = next((flow for flow in flows if flow.lower() == name.lower()), None)
    if found is None:
        raise NotFound(
            f"there is no stream '{name[:80]}'", hint=f"available streams: {', '.join(flows)}."
        )
    return found


def _epoch(epoch: EpochRecord, phases: dict[str, int] | None) -> EpochInfo:
    return EpochInfo(
        epoch.number,
        epoch.stream,
        list(epoch.range.lower.offsets),
        list(epoch.range.upper.offsets),
        epoch.events,
        epoch.late,
        epoch.duplicates,
        epoch.dead_letters,
        iso(epoch.started_at),
        iso(epoch.committed_at),
        (epoch.committed_at - epoch.started_at) / 1000,
        phases,
    )


def _generations(found: list[GenerationRecord]) -> Iterator[GenerationInfo]:
    """Generations with their number of events, if the previous boundary is stored."""
    boundaries: dict[str, list[tuple[int, Position]]] = {}
    for generation in reversed(found):
        place = generation.number, generation.boundary
        boundaries.setdefault(generation.stream, []).append(place)
    events = {
        (name, number): upper - lower
        for name, places in boundaries.items()
        for (_, lower), (number, upper) in pairwise(places)
    }
    for generation in found:
        name, number, offsets = generation.stream, generation.number, generation.boundary.offsets
        known = events.get((name, number), sum(offsets) if number == 1 else None)
        at, audits = iso(generation.promoted_at), list(generation.audits)
        yield GenerationInfo(name, number, list(offsets), known, at, audits)
