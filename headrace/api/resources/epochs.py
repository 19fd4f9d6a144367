"""The newest epochs of speed and generations of batch."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec.structs import replace

from headrace.access.caller import Caller
from headrace.access.object import object_of
from headrace.access.operation import Operation
from headrace.api.get_request import Endpoint, GetRequest, RequestHandler
from headrace.api.needs import ANY_USER
from headrace.api.parameter import Limit
from headrace.api.read_access import may_read, may_read_all, may_read_flow
from headrace.api.resources.catalog import CatalogRequest
from headrace.core.flow import stream_names
from headrace.serving.store import AuditResult

EPOCHS_LISTED = 100


class EpochInfo(msgspec.Struct, frozen=True):
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
    phases: dict[str, int] | None = None  # milliseconds of each, while the process has them


class GenerationInfo(msgspec.Struct, frozen=True):
    """One promoted build of batch."""

    stream: str
    number: int
    boundary: list[int]
    events: int | None  # since the previous boundary; None if that is no longer known
    at: str
    audits: list[AuditResult]


class Epochs(msgspec.Struct, frozen=True):
    """The newest first, of each, and how many of each are stored."""

    epochs: list[EpochInfo]
    generations: list[GenerationInfo]
    epochs_total: int
    generations_total: int


class EpochsRequest(GetRequest[Epochs], frozen=True):
    """The newest epochs and generations."""

    endpoint = Endpoint(
        "/v1/epochs", "epochs", ANY_USER, stored=True,
        unknown="epochs have no parameter '{name}'",
    )  # fmt: skip
    stream: Annotated[str | None, "only epochs and generations of this stream"] = None
    limit: Annotated[Limit, "maximum number of epochs, and of generations"] = EPOCHS_LISTED

    def readable(self, service: RequestHandler, caller: Caller) -> Epochs:
        """The newest of one flow, which the caller must be allowed to read, or of all flows that
        the caller may read.
        """
        for name in stream_names(self.stream) if self.stream is not None else ():
            caller.check(Operation.READ, object_of("stream", name))
        if may_read_all(caller):
            return service.ask(self)
        found = service.ask(self) if self.stream is not None else self._of_flows(service, caller)
        return replace(found, generations=[_audited(one, caller) for one in found.generations])

    def _of_flows(self, service: RequestHandler, caller: Caller) -> Epochs:
        """The newest of all flows that the caller may read."""
        catalog = service.ask(CatalogRequest())
        flows = [s.name for s in catalog.streams if s.kind == "declared"]
        flows += [view.stream for view in catalog.views if view.stream]
        readable_flows = [flow for flow in dict.fromkeys(flows) if may_read_flow(caller, flow)]
        found = [service.ask(EpochsRequest(flow, self.limit)) for flow in readable_flows]
        epochs = [epoch for one in found for epoch in one.epochs]
        generations = [generation for one in found for generation in one.generations]
        return Epochs(
            sorted(epochs, key=lambda epoch: epoch.number, reverse=True)[: self.limit],
            sorted(generations, key=lambda generation: generation.at, reverse=True)[: self.limit],
            sum(one.epochs_total for one in found),
            sum(one.generations_total for one in found),
        )


def _audited(generation: GenerationInfo, caller: Caller) -> GenerationInfo:
    audits = [audit for audit in generation.audits if may_read(caller, "view", audit.view)]
    return replace(generation, audits=audits)
