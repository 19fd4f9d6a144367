"""A request's body, as the bytes of its events.

Never more than `limit` bytes are held, neither as received nor unpacked. An event's bytes are kept
as they came: an array is cut between its elements, lines at their ends, and nothing is written
anew. A line is an event even if it is no JSON, because a dead letter is better than a lost event;
an array that is no JSON cannot be cut and is refused whole.
tests/api/test_body.py checks each kind of body and each refusal.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import msgspec
from starlette.requests import Request

from headrace.core.errors import BadRequest, LimitReached
from headrace.ingest.intake import split_lines

JSON, NDJSON, ONE = "application/json", "application/x-ndjson", "application/octet-stream"
ANY = "*/*"
KINDS = (JSON, NDJSON, "text/plain", ONE)
# Each further member copies what is left of the body, so an endless row of empty ones is refused.
GZIP_MEMBERS_MAX = 100
_GZIP_WBITS = 31


@dataclass(frozen=True, slots=True)
class Body:
    """A body as received, and what its headers say of it."""

    data: bytes
    media: str = ""
    encoding: str = ""

    def plain(self, limit: int) -> bytes:
        """The bytes that were meant: unpacked where they were packed."""
        if self.encoding in ("", "identity"):
            return self.data
        if self.encoding in ("gzip", "x-gzip"):
            return gunzip(self.data, limit)
        raise BadRequest(
            f"the content encoding '{self.encoding}' is not known",
            hint="send gzip, or plain bytes.",
        )

    def records(self, limit: int) -> list[bytes]:
        """The events in it."""
        return split(self.plain(limit), self.media)


async def read_body(request: Request, limit: int) -> Body:
    """Read a body, and stop where it becomes longer than the limit. How long it may take is the
    connection's question.
    """
    headers = request.headers
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise too_large(limit)
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise too_large(limit)
        parts.append(part)
    media = headers.get("content-type", "").partition(";")[0].strip().lower()
    return Body(b"".join(parts), media, headers.get("content-encoding", "").strip().lower())


def too_large(limit: int) -> LimitReached:
    return LimitReached(
        f"the request's body has more than {limit} bytes",
        detail="nothing of this request was accepted.",
        hint="send fewer events at once, or raise http.body_bytes_max in headrace.toml.",
    )


def gunzip(data: bytes, limit: int) -> bytes:
    """Unpack gzip, of several members too, without ever making more than the limit."""
    parts, left = [], limit
    for _ in range(GZIP_MEMBERS_MAX):
        member = zlib.decompressobj(wbits=_GZIP_WBITS)
        try:
            parts.append(member.decompress(data, left + 1))
        except zlib.error as error:
            raise BadRequest(f"the body is no valid gzip: {error}") from error
        left -= len(parts[-1])
        if left < 0:
            raise too_large(limit)
        if not member.eof:
            raise BadRequest("the body's gzip is cut off before its end")
        data = member.unused_data.lstrip(b"\0")
        if not data:
            return b"".join(parts)
    raise BadRequest(f"the body's gzip has more than {GZIP_MEMBERS_MAX} members")


def split(data: bytes, media: str = "") -> list[bytes]:
    r"""The events of a body of this media type; without one its first byte decides.

    >>> split(b'[{"a": 1}, {"a":2}]'), split(b'{"a":1}\n{"a":'), split(b'{\n  "a": 1\n}\n')
    ([b'{"a": 1}', b'{"a":2}'], [b'{"a":1}', b'{"a":'], [b'{\n  "a": 1\n}'])
    """
    if media not in ("", *KINDS):
        raise BadRequest(
            f"a body of type '{media}' is not understood",
            hint="with curl: -H 'Content-Type: application/x-ndjson' --data-binary @events.ndjson",
        )
    if not data or data.isspace():
        raise BadRequest("the body is empty", hint="send an event as JSON, an array, or lines.")
    if media == ONE:
        return [data]
    if media == NDJSON:
        return split_lines(data)
    return _array(data) if data.lstrip()[:1] == b"[" else _object_or_lines(data)


def _array(data: bytes) -> list[bytes]:
    try:
        return [bytes(raw) for raw in msgspec.json.decode(data, type=list[msgspec.Raw])]
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadRequest(
            "the body begins as a JSON array but is none",
            detail=f"{error}; nothing of this request was accepted.",
            hint="send one event a line as application/x-ndjson, so that each is judged by itself.",
        ) from error


def _object_or_lines(data: bytes) -> list[bytes]:
    lines = split_lines(data)
    return [data.strip()] if len(lines) > 1 and is_json(data) else lines


def is_json(data: bytes) -> bool:
    """Whether this is one JSON value and nothing more. Of NDJSON only the first line is read."""
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
