"""Live topics over HTTP, told to each as far as they may read.

A topic is computed once for all who hear it, and cut for those who may not read the whole job. A
view, and alerts, are told whole or not at all; that is asked again before each event, so who may
not hear a topic any more hears `failed`, as with a subscription.
tests/api/test_live.py hears as several users.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.access.caller import Caller
from headrace.access.object import Object, object_of
from headrace.access.operation import Operation
from headrace.api.authentication import authenticate
from headrace.api.events import EventStream, ring
from headrace.api.handlers import Api
from headrace.api.read_access import may_read_all
from headrace.api.readable import readable_status
from headrace.api.resources.topology import Topology, readable_topology
from headrace.api.shapes import StatusReport
from headrace.core.errors import BadRequest, Unavailable
from headrace.serving.subscriber import OpenSubscription, SubscriptionEvent

STATUS, TOPOLOGY, ALERTS, VIEW = "status", "topology", "alerts", "view:"


async def live(api: Api, request: Request) -> Response:
    topics = [topic for topic in request.query_params.get("topics", "").split(",") if topic]
    if not topics:
        raise BadRequest(
            "the parameter topics is missing", hint="?topics=status,topology,view:NAME"
        )
    who = partial(authenticate, api.access, request)
    check = partial(_check, who, topics)
    check()
    # A reader that comes back hears the present state of each topic, so nothing is resumed.
    news = asyncio.Event()
    call = partial(ring, asyncio.get_running_loop(), news)
    hearing = await api.quick.run(partial(api.service.live, topics, call))
    return EventStream(ReadableHearing(hearing, who), news, check)


def _check(who: Callable[[], Caller], topics: Sequence[str]) -> None:
    """Forbidden if one of the topics that are told whole may not be read."""
    caller = who()
    for topic in topics:
        object = _object(topic, caller)
        if object is not None:
            caller.check(Operation.READ, object, f"the topic '{topic[:80]}'")


def _object(topic: str, caller: Caller) -> Object | None:
    if topic.startswith(VIEW):
        return object_of("view", topic.removeprefix(VIEW))
    return caller.whole_job if topic == ALERTS else None


class ReadableHearing:
    """What is heard, cut for the one who hears it."""

    def __init__(self, hearing: OpenSubscription, who: Callable[[], Caller]) -> None:
        self._hearing, self._who = hearing, who
        self._told: dict[str, bytes] = {}

    @property
    def ended(self) -> bool:
        return self._hearing.ended

    def poll(self, seconds: float = 0.0) -> list[SubscriptionEvent]:
        heard = self._hearing.poll(seconds)
        if not heard or may_read_all(caller := self._who()):
            return heard
        cut = [msgspec.structs.replace(one, data=_cut(one, caller)) for one in heard]
        return [one for one in cut if self._changed(one)]

    def _changed(self, one: SubscriptionEvent) -> bool:
        """Whether what is left of it is another than was told before."""
        state = msgspec.json.encode(one.data)
        changed = self._told.get(one.event) != state
        self._told[one.event] = state
        return changed

    def close(self) -> None:
        self._hearing.close()


def _cut(one: SubscriptionEvent, caller: Caller) -> object:
    if one.event not in (STATUS, TOPOLOGY):
        return one.data
    if bytes(one.data).startswith(b'{"error":'):
        # What went wrong may name anything.
        return {"error": Unavailable(f"the {one.event} cannot be told now").as_dict()}
    if one.event == STATUS:
        return readable_status(msgspec.json.decode(one.data, type=StatusReport), caller)
    return readable_topology(msgspec.json.decode(one.data, type=Topology), caller)
