"""The routes of events: found by what they say, and followed through the project.

tests/api/test_observing.py checks each on a real server.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from headrace.api.handlers import Api, json_response
from headrace.api.observed.events import (
    EVENTS_LIMIT_MAX,
    EVENTS_LISTED,
    Events,
    EventsWanted,
    EventTrace,
    RecordStatus,
)
from headrace.api.route import STREAM, Parameter, Route
from headrace.core.errors import BadRequest

NUMBER_MAX = 2**53
_NAMES = {"from": "since", "to": "until"}


async def events(api: Api, request: Request) -> Response:
    stream, wanted = request.path_params["stream"], _wanted(request)
    call = partial(api.service.observatory.events, stream, wanted)
    return json_response(await api.slow.run(call))


async def event(api: Api, request: Request) -> Response:
    path = request.path_params
    partition, offset = (number_of(name, path[name]) for name in ("partition", "offset"))
    call = partial(api.service.observatory.event, path["stream"], partition, offset)
    return json_response(await api.slow.run(call))


def _wanted(request: Request) -> EventsWanted:
    """What is asked for; all parameters but `field` may be given once."""
    said: dict[str, Any] = {}
    fields: list[tuple[str, str]] = []
    for name, text in request.query_params.multi_items():
        if name == "field":
            fields.append(_field(text))
            continue
        if name not in _KNOWN:
            raise BadRequest(
                f"events have no parameter '{name[:40]}'",
                hint=f"there are: {', '.join((*_KNOWN, 'field'))}.",
            )
        if name in said:
            raise BadRequest(f"the parameter '{name}' is given twice")
        said[name] = _KNOWN[name](name, text)
    _check(said)
    return EventsWanted(
        **{_NAMES.get(name, name): value for name, value in said.items()}, fields=fields
    )


def _check(said: dict[str, Any]) -> None:
    if "offset" in said and "partition" not in said:
        raise BadRequest(
            "an offset is of a partition, which is missing", hint="?partition=0&offset=12"
        )


def _field(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not name or not colon:
        raise BadRequest(
            f"a field is given as name:value, not '{text[:40]}'", hint="?field=user:ada"
        )
    return name, value


def number_of(name: str, text: str, least: int = 0, most: int = NUMBER_MAX) -> int:
    """A whole number of a request; BadRequest if it is none."""
    if text.isascii() and text.isdecimal() and len(text) <= 16 and least <= int(text) <= most:
        return int(text)
    span = f"from {least} to {most}" if most < NUMBER_MAX else f"from {least} on"
    raise BadRequest(f"{name} must be a whole number {span}, not '{text[:40]}'")


def _limit(name: str, text: str) -> int:
    return number_of(name, text, 1, EVENTS_LIMIT_MAX)


def _text(name: str, text: str) -> str:
    return text


_KNOWN = {
    "limit": _limit,
    "before": _text,
    "partition": number_of,
    "offset": number_of,
    "id": _text,
    "key": _text,
    "from": _text,
    "to": _text,
    "status": _text,
}
_WANTED = (
    STREAM,
    Parameter("limit", "query", int, f"1 to {EVENTS_LIMIT_MAX}; {EVENTS_LISTED} if not given"),
    Parameter("before", "query", str, "only events before this position, such as 120,98"),
    Parameter("partition", "query", int, "only events of this partition"),
    Parameter("offset", "query", int, "only the event at this place of the partition"),
    Parameter("id", "query", str, "only events with this id"),
    Parameter("key", "query", str, "only events with this key"),
    Parameter("from", "query", str, "event time at or after which they happened"),
    Parameter("to", "query", str, "event time before which they happened"),
    Parameter("field", "query", list[str], "name:value that they must have; may be repeated"),
    Parameter("status", "query", RecordStatus, "only records of which this became"),
)

SEARCHING: tuple[Route, ...] = (
    Route(
        "GET", "/v1/streams/{stream}/events", "events",
        "The newest events of a stream, or those that say something.",
        events, Events, parameters=_WANTED,
    ),
    Route(
        "GET", "/v1/streams/{stream}/events/{partition}/{offset}", "event",
        "One event, and what became of it.",
        event, EventTrace,
        parameters=(
            STREAM,
            Parameter("partition", "path", int, "its partition of the log"),
            Parameter("offset", "path", int, "its place in the partition"),
        ),
    ),
)  # fmt: skip
