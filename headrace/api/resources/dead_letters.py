"""Events of a stream that could not be read, the newest of them."""

from __future__ import annotations

from typing import Annotated

import msgspec

from headrace.api import needs
from headrace.api.get_request import Endpoint, GetRequest
from headrace.api.parameter import Limit


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


class DeadLettersRequest(GetRequest[DeadLetters], frozen=True):
    """The newest events that could not be read, with the reason and their bytes."""

    endpoint = Endpoint(
        "/v1/streams/{stream}/dead-letters", "dead_letters", needs.reads("stream"), stored=True
    )
    stream: Annotated[str, "name of a stream"]
    limit: Annotated[Limit, "maximum number of rows"] = 100
