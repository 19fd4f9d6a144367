"""What every kind of destination is: how SQL names it, what it needs, and how it is delivered to.

A destination is a value: it is read once from SQL, stored in the plan as JSON, and compared by its
fields. Those who send there share its queue. A writer delivers at least once: when `deliver`
returns, the messages are where they belong; if it raises, they are tried again later, unless it
raises `Undeliverable`. A kind is a file of this room and a name in headrace/destination/kinds.py.
tests/destination checks each.
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

if TYPE_CHECKING:  # a project is read with this page
    from headrace.define.project import Project

Submit = Callable[[str, Sequence[bytes]], "Future[Any]"]  # sends events to a stream


class Undeliverable(Exception):
    """It makes no sense to try this again."""


class Message(msgspec.Struct, frozen=True):
    """A pane or a notification on its way."""

    number: int
    key: str  # the same when it comes again
    body: bytes  # JSON
    attempts: int = 0  # that have failed

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(self.body)
        return found


@dataclass(frozen=True)
class DestinationContext:
    """What destinations are connected with."""

    project: Project
    submit: Submit
    durable: bool = True  # False: what was delivered may be lost with the machine

    @cached_property
    def actions(self) -> dict[str, Callable[[dict[str, Any]], Any]]:
        """The functions of functions.py that may be called, loaded once for all."""
        return load_actions(self.project.functions_file)


class DestinationWriter(Protocol):
    batch_max: int  # messages that one call takes at most

    def deliver(self, messages: Sequence[Message]) -> None:
        """Deliver all of them, durably unless they may be lost, or raise."""

    def newest(self) -> int:
        """The number of the last pane that is certainly there; 0 if that is not known."""
        return 0


def _tag(name: str) -> str:
    return name.removesuffix("Destination").lower()


class AnyDestination(msgspec.Struct, frozen=True, tag_field="kind", tag=_tag):
    """A destination of any kind."""

    word: ClassVar[str] = ""  # that it begins with in SQL
    usage: ClassVar[str]
    accepts_panes: ClassVar[bool] = False  # whether a sink goes there
    feeds: ClassVar[bool] = False  # whether it sends events to its target, a stream
    calls: ClassVar[bool] = False  # whether it calls its target, a function of functions.py

    target: str

    @property
    def kind(self) -> str:
        return str(self.__struct_config__.tag)

    @property
    def name(self) -> str:
        """How it is shown, and its queue is called."""
        return f"{self.kind} {self.target}"

    @classmethod
    def accept(cls, tokens: TokenCursor) -> bool:
        """Whether one of this kind is named here; its word is taken."""
        return tokens.accept(cls.word)

    @classmethod
    def read(cls, tokens: TokenCursor) -> Self:
        """What stands after the word."""
        return cls(tokens.literal())

    def check(self, project: Project, sender: Sender) -> None:
        """Refuse what cannot work with these settings."""

    def resolved(self, streams: Mapping[str, str | None], sender: Sender) -> Self:
        """The same, with what is known of the streams that take events: their ids, by name."""
        return self

    def place(self, project: Project) -> object | None:
        """What of the world a sink needs for itself, however it was written; None if nothing."""
        return None

    def connect(self, context: DestinationContext) -> DestinationWriter:
        """What delivers; refused if it cannot work. Nothing is opened or sent yet."""
        raise NotImplementedError
