"""Live topics over HTTP, filtered by the caller's permissions.

A topic is computed once for all subscribers, and filtered for those who may not read the whole job.
Views and alerts are sent whole or not at all. Permissions are checked before each event, so a
caller who loses one gets `failed`, as in a subscription. tests/api/test_live.py subscribes as
several users.
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
from headrace.api.authentication import authenticate, caller_of
from headrace.api.events import EventStream, wake
from headrace.api.handlers import Api
from headrace.api.read_access import may_read_all
from headrace.api.resources.status import ProjectStatus, readable_status
from headrace.api.resources.topology import Topology, readable_topology
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
    # A new connection gets the current state of each topic, so there is nothing to resume.
    news = asyncio.Event()
    call = partial(api.service.live, topics, partial(wake, asyncio.get_running_loop(), news))
    hearing = await api.subscribing.run(caller_of(request).user, call)
    return EventStream(ReadableSubscription(hearing, who), news, check)


def _check(who: Callable[[], Caller], topics: Sequence[str]) -> None:
    """Forbidden if the caller may not read a topic that is sent whole."""
    caller = who()
    for topic in topics:
        object = _object(topic, caller)
        if object is not None:
            caller.check(Operation.READ, object, f"the topic '{topic[:80]}'")


def _object(topic: str, caller: Caller) -> Object | None:
    if topic.startswith(VIEW):
        return object_of("view", topic.removeprefix(VIEW))
    return caller.whole_job if topic == ALERTS else None


class ReadableSubscription:
    """A subscription whose events are filtered by the permissions of its caller."""

    def __init__(self, hearing: OpenSubscription, who: Callable[[], Caller]) -> None:
        self._hearing, self._who = hearing, who
        self._last_sent: dict[str, bytes] = {}

    @property
    def ended(self) -> bool:
        return self._hearing.ended

    def poll(self, seconds: float = 0.0) -> list[SubscriptionEvent]:
        heard = self._hearing.poll(seconds)
        if not heard or may_read_all(caller := self._who()):
            return heard
        cut = [msgspec.structs.replace(one, data=_readable(one, caller)) for one in heard]
        return [one for one in cut if self._changed(one)]

    def _changed(self, one: SubscriptionEvent) -> bool:
        """Whether the filtered state differs from the last one that was sent."""
        state = msgspec.json.encode(one.data)
        changed = self._last_sent.get(one.event) != state
        self._last_sent[one.event] = state
        return changed

    def close(self) -> None:
        self._hearing.close()


def _readable(one: SubscriptionEvent, caller: Caller) -> object:
    if one.event not in (STATUS, TOPOLOGY):
        return one.data
    if bytes(one.data).startswith(b'{"error":'):
        # The error may name objects that the caller may not read.
        return {"error": Unavailable(f"the {one.event} is not available now").as_dict()}
    if one.event == STATUS:
        return readable_status(msgspec.json.decode(one.data, type=ProjectStatus), caller)
    return readable_topology(msgspec.json.decode(one.data, type=Topology), caller)
