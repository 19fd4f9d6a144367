"""A request's body, as the bytes of its events.

At most `limit` bytes are held in memory, both compressed and decompressed. The bytes of an event
are kept as received: an array is split between its elements, NDJSON at line ends, and nothing is
encoded again. A line that is not valid JSON is still an event, because a dead letter is better than
a lost event; an array that is not valid JSON cannot be split and is refused. tests/api/test_body.py
checks each kind of body and each refusal.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import msgspec
from starlette.datastructures import Headers
from starlette.requests import Request

from headrace.core.errors import BadRequest, LimitReached
from headrace.ingest.records import split_lines

JSON, NDJSON, OCTET_STREAM = "application/json", "application/x-ndjson", "application/octet-stream"
ANY = "*/*"
KINDS = (JSON, NDJSON, "text/plain", OCTET_STREAM)
# Each member copies the rest of the body, so a body of very many empty members is refused.
GZIP_MEMBERS_MAX = 100
_GZIP_WBITS = 31


@dataclass(frozen=True, slots=True)
class Body:
    """A body as received, with its media type and content encoding."""

    data: bytes
    media: str = ""
    encoding: str = ""

    def plain(self, limit: int) -> bytes:
        """The decompressed bytes."""
        if self.encoding in ("", "identity"):
            return self.data
        if self.encoding in ("gzip", "x-gzip"):
            return gunzip(self.data, limit)
        raise BadRequest(
            f"the content encoding '{self.encoding}' is not supported",
            hint="send gzip, or no content encoding.",
        )

    def records(self, limit: int) -> list[bytes]:
        """The events in it."""
        return split(self.plain(limit), self.media)


async def read_body(request: Request, limit: int) -> Body:
    """Read a body, and stop when it exceeds the limit. The connection has the timeout."""
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
    encoding = headers.get("content-encoding", "").strip().lower()
    return Body(b"".join(parts), media_type(headers), encoding)


def media_type(headers: Headers) -> str:
    """The media type of a body, without its parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def too_large(limit: int) -> LimitReached:
    return LimitReached(
        f"the request's body has more than {limit} bytes",
        detail="nothing of this request was accepted.",
        hint="send fewer events per request, or raise http.body_bytes_max in headrace.toml.",
    )


def gunzip(data: bytes, limit: int) -> bytes:
    """Decompress gzip, also of several members, up to the limit."""
    parts, left = [], limit
    for _ in range(GZIP_MEMBERS_MAX):
        member = zlib.decompressobj(wbits=_GZIP_WBITS)
        try:
            parts.append(member.decompress(data, left + 1))
        except zlib.error as error:
            raise BadRequest(f"the body is not valid gzip: {error}") from error
        left -= len(parts[-1])
        if left < 0:
            raise too_large(limit)
        if not member.eof:
            raise BadRequest("the gzip body is truncated")
        data = member.unused_data.lstrip(b"\0")
        if not data:
            return b"".join(parts)
    raise BadRequest(f"the gzip body has more than {GZIP_MEMBERS_MAX} members")


def split(data: bytes, media: str = "") -> list[bytes]:
    r"""The events of a body of this media type; without one the first byte decides.

    >>> split(b'[{"a": 1}, {"a":2}]'), split(b'{"a":1}\n{"a":'), split(b'{\n  "a": 1\n}\n')
    ([b'{"a": 1}', b'{"a":2}'], [b'{"a":1}', b'{"a":'], [b'{\n  "a": 1\n}'])
    """
    if media not in ("", *KINDS):
        raise BadRequest(
            f"the media type '{media}' is not supported",
            hint="with curl: -H 'Content-Type: application/x-ndjson' --data-binary @events.ndjson",
        )
    if not data or data.isspace():
        raise BadRequest("the body is empty", hint="send an event as JSON, an array, or lines.")
    if media == OCTET_STREAM:
        return [data]
    if media == NDJSON:
        return split_lines(data)
    return _array(data) if data.lstrip()[:1] == b"[" else _object_or_lines(data)


def _array(data: bytes) -> list[bytes]:
    try:
        return [bytes(raw) for raw in msgspec.json.decode(data, type=list[msgspec.Raw])]
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadRequest(
            "the body is not a valid JSON array",
            detail=f"{error}; nothing of this request was accepted.",
            hint="send one event per line as application/x-ndjson, so that each is checked alone.",
        ) from error


def _object_or_lines(data: bytes) -> list[bytes]:
    lines = split_lines(data)
    return [data.strip()] if len(lines) > 1 and is_json(data) else lines


def is_json(data: bytes) -> bool:
    """Whether this is one JSON value and nothing more; for NDJSON only the first line is read."""
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
