"""The protocol of destinations: how SQL names them, what they require, and how they are written to.

A destination is a value: it is parsed from SQL, stored in the plan as JSON, and compared by its
fields. All senders to a destination share its queue. A writer delivers at least once: when
`deliver` returns, all messages are delivered; if it raises, they are retried later, unless it
raises `Undeliverable`. A kind is a module of this package and an entry of
headrace/destination/kinds.py. tests/destination checks each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import msgspec

from headrace.define.actions import load_actions
from headrace.define.definitions import Sender
from headrace.define.tokens import TokenCursor

if TYPE_CHECKING:  # headrace.define.project imports this module
    from headrace.define.project import Project

Submit = Callable[[str, Sequence[bytes]], "Future[Any]"]  # sends events to a stream


class Undeliverable(Exception):
    """Delivery has failed and must not be retried."""


class Message(msgspec.Struct, frozen=True):
    """A pane or a notification to deliver."""

    number: int
    key: str  # the same at each attempt
    body: bytes  # JSON
    attempts: int = 0  # failed ones

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = msgspec.json.decode(self.body)
        return document


@dataclass(frozen=True)
class DestinationContext:
    """What destinations require to connect."""

    project: Project
    submit: Submit
    durable: bool = True  # False: a delivered message may be lost if the machine crashes

    @cached_property
    def actions(self) -> dict[str, Callable[[dict[str, Any]], Any]]:
        """The functions of functions.py that may be called, loaded once."""
        return load_actions(self.project.functions_file)


class DestinationWriter(Protocol):
    batch_max: int  # messages per call of `deliver`

    def deliver(self, messages: Sequence[Message]) -> None:
        """Deliver all messages, durably unless the context says otherwise, or raise."""

    def newest(self) -> int:
        """The number of the last pane that was certainly delivered; 0 if it is not known."""
        return 0


def _tag(name: str) -> str:
    return name.removesuffix("Destination").lower()


class AnyDestination(msgspec.Struct, frozen=True, tag_field="kind", tag=_tag):
    """A destination of any kind."""

    word: ClassVar[str] = ""  # the SQL keyword that it begins with
    usage: ClassVar[str]
    accepts_panes: ClassVar[bool] = False  # whether a sink may have it
    feeds: ClassVar[bool] = False  # whether it sends events to its target, a stream
    calls: ClassVar[bool] = False  # whether it calls its target, a function of functions.py

    target: str

    @property
    def kind(self) -> str:
        return str(self.__struct_config__.tag)

    @property
    def name(self) -> str:
        """The name of the destination, and of its queue of notifications."""
        return f"{self.kind} {self.target}"

    @classmethod
    def accept(cls, tokens: TokenCursor) -> bool:
        """Consume the keyword of this kind, if it is next."""
        return tokens.accept(cls.word)

    @classmethod
    def read(cls, tokens: TokenCursor) -> Self:
        """Parse what follows the keyword."""
        return cls(tokens.literal())

    def check(self, project: Project, sender: Sender) -> None:
        """Raise if the destination does not work with these settings."""

    def resolved(self, streams: Mapping[str, str | None], sender: Sender) -> Self:
        """The same with names resolved; `streams` maps names to id columns."""
        return self

    def exclusive_target(self, project: Project) -> object | None:
        """The normalized target, if only one sink may write to it; else None."""
        return None

    def connect(self, context: DestinationContext) -> DestinationWriter:
        """A writer; raises if it cannot work. Nothing is opened or sent yet."""
        raise NotImplementedError
