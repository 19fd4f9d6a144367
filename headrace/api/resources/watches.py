"""The current watches."""

from __future__ import annotations

from typing import Annotated

import msgspec

from headrace.access.caller import Caller
from headrace.api import needs
from headrace.api.get_request import Endpoint, GetRequest, RequestHandler
from headrace.api.read_access import readable
from headrace.core.errors import BadRequest
from headrace.serving.watches import ACTIVE, ENDED, WatchStatus


class WatchList(msgspec.Struct, frozen=True):
    """The current watches."""

    watches: list[WatchStatus]


class WatchesRequest(GetRequest[WatchList], frozen=True):
    """All watches, and why ended ones ended."""

    endpoint = Endpoint(
        "/v1/watches", "watches", needs.reads(needs.NAMED), stored=True,
        unknown="watches have no parameter '{name}'",
    )  # fmt: skip
    state: Annotated[str | None, "only watches in this state: active or ended"] = None

    def __post_init__(self) -> None:
        if self.state is not None and self.state not in {ACTIVE, ENDED}:
            raise BadRequest(
                f"the state of a watch must be {ACTIVE} or {ENDED}, not '{self.state[:40]}'"
            )

    def readable(self, service: RequestHandler, caller: Caller) -> WatchList:
        return WatchList(readable("rule", service.ask(self).watches, caller))


class WatchRequest(GetRequest[WatchStatus], frozen=True):
    """One watch, with its text and its matches."""

    endpoint = Endpoint("/v1/watches/{watch}", "watch", needs.reads("watch"), stored=True)
    watch: Annotated[str, "name of a watch"]
