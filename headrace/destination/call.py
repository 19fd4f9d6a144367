"""NOTIFY CALL function: calls a function of functions.py in the thread of the queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from headrace.define.tokens import TokenCursor
from headrace.destination.protocol import (
    AnyDestination,
    DestinationContext,
    DestinationWriter,
    Message,
)


class CallDestination(AnyDestination, frozen=True):
    word = "CALL"
    usage = "CALL function"
    calls = True

    @classmethod
    def read(cls, tokens: TokenCursor) -> Self:
        return cls(tokens.name("the function"))

    def connect(self, context: DestinationContext) -> DestinationWriter:
        return CallWriter(context.actions[self.target])


class CallWriter(DestinationWriter):
    batch_max = 1

    def __init__(self, body: Callable[[dict[str, Any]], Any]) -> None:
        self.body = body

    def deliver(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self.body(message.document)
