"""Each kind of body as events, on a real server and a real log."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from headrace.api.body import gunzip, split
from headrace.core.errors import BadRequest, LimitReached

from .conftest import BODY_BYTES_MAX, EVENT_BYTES_MAX, EVENTS, Shop, condition

PRETTY = b'{\n  "user": "ada",\n  "ms": 1\n}\n'
LINES = b'{"user":"ada"}\r\n\n{oops\n"text"\n\xff\xfe\n{"user":"bob"}'
LINE_RECORDS = [b'{"user":"ada"}', b"{oops", b'"text"', b"\xff\xfe", b'{"user":"bob"}']


@pytest.mark.parametrize(
    ("data", "media", "records"),
    [
        (b'{"user":"ada"}', "application/json", [b'{"user":"ada"}']),
        (b'{"user": "ada"}\n', "", [b'{"user": "ada"}']),
        (PRETTY, "application/json", [PRETTY.strip()]),
        (PRETTY, "text/plain", [PRETTY.strip()]),
        (PRETTY, "", [PRETTY.strip()]),
        (b' [ {"a" : 1.0} ,\n{"a":\n2} ]', "application/json", [b'{"a" : 1.0}', b'{"a":\n2}']),
        (b"[]", "", []),
        (LINES, "application/x-ndjson", LINE_RECORDS),
        (LINES, "text/plain; charset=utf-8", LINE_RECORDS),
        (LINES, "application/json", LINE_RECORDS),
        (LINES, "", LINE_RECORDS),
        (b"[1\n[2]", "application/x-ndjson", [b"[1", b"[2]"]),
        (b"a\nb", "application/octet-stream", [b"a\nb"]),
    ],
)
def test_each_kind_of_body_is_cut_into_its_events(
    client: httpx.Client, shop: Shop, data: bytes, media: str, records: list[bytes]
) -> None:
    response = client.post(EVENTS, content=data, headers={"Content-Type": media} if media else {})
    assert response.status_code == 200, response.text
    assert response.json()["accepted"] == len(records)
    assert shop.logged() == records


def test_an_accepted_request_says_where_its_events_lie(client: httpx.Client) -> None:
    client.post(EVENTS, json={"event_id": 1})
    again = [{"event_id": 1}, {"event_id": 1, "ms": 2}, {"event_id": 2}]
    assert client.post(EVENTS, json=again).json() == {
        "accepted": 3,
        "duplicates": 1,
        "conflicts": 1,
        "offsets": [{"partition": 0, "first_offset": 1, "next_offset": 4}],
    }


@pytest.mark.parametrize(
    ("data", "headers"),
    [
        (b"", {}),
        (b" \n ", {}),
        (b'[{"a":1}, {oops]', {}),
        (b'[{"a":1}]\n[{"a":2}]', {}),
        (b"[" * 100_000, {}),
        (b"a=1", {"Content-Type": "application/x-www-form-urlencoded"}),
        (b"no gzip", {"Content-Encoding": "gzip"}),
        (b"", {"Content-Encoding": "gzip"}),
        (gzip.compress(LINES, mtime=0)[:-9], {"Content-Encoding": "gzip"}),
        (gzip.compress(LINES, mtime=0) + b"junk", {"Content-Encoding": "gzip"}),
        (gzip.compress(b"", mtime=0), {"Content-Encoding": "gzip"}),
        (b"x", {"Content-Encoding": "br"}),
    ],
)
def test_a_body_that_cannot_be_cut_is_refused_whole(
    client: httpx.Client, shop: Shop, data: bytes, headers: dict[str, str]
) -> None:
    response = client.post(EVENTS, content=data, headers=headers)
    assert (response.status_code, condition(response)) == (400, "BadRequest")
    assert shop.logged() == []


def test_gzip_is_unpacked_also_in_several_members(client: httpx.Client, shop: Shop) -> None:
    packed = gzip.compress(b'{"a":1}\n', mtime=0) + gzip.compress(b'{"a":2}\n', mtime=0) + bytes(8)
    response = client.post(EVENTS, content=packed, headers={"Content-Encoding": "gzip"})
    assert response.json()["accepted"] == 2
    assert shop.logged() == [b'{"a":1}', b'{"a":2}']


def _endless() -> Iterator[bytes]:
    line = b'{"user":"' + b"a" * 1000 + b'"}\n'
    for _ in range(4 * BODY_BYTES_MAX // len(line)):
        yield line


@pytest.mark.parametrize(
    "request_",
    [
        {"content": b"x" * (BODY_BYTES_MAX + 1)},
        {"content": _endless},
        {"content": gzip.compress(bytes(64 << 20)), "headers": {"Content-Encoding": "gzip"}},
        {"content": b"x" * (EVENT_BYTES_MAX + 1)},
    ],
    ids=["declared", "chunked", "gzip bomb", "one event"],
)
def test_what_is_too_large_is_refused_whole(
    client: httpx.Client, shop: Shop, request_: dict[str, Any]
) -> None:
    content = request_["content"]
    sent = request_ | {"content": content() if callable(content) else content}
    response = client.post(EVENTS, **sent)
    assert (response.status_code, condition(response)) == (413, "LimitReached")
    assert shop.logged() == []
    assert client.post(EVENTS, content=b"{}").status_code == 200


def test_a_body_of_exactly_the_limit_is_taken(client: httpx.Client, shop: Shop) -> None:
    line = b"x" * (EVENT_BYTES_MAX - 1)
    data = (line + b"\n") * (BODY_BYTES_MAX // EVENT_BYTES_MAX)
    assert len(data) == BODY_BYTES_MAX
    assert client.post(EVENTS, content=data).status_code == 200
    packed = client.post(
        EVENTS, content=gzip.compress(data, mtime=0), headers={"Content-Encoding": "gzip"}
    )
    assert packed.status_code == 200
    assert shop.logged() == 2 * (BODY_BYTES_MAX // EVENT_BYTES_MAX) * [line]


def test_unpacking_makes_no_more_than_the_limit() -> None:
    bomb = zlib.compressobj(9, wbits=31)
    packed = bomb.compress(bytes(10_000)) + bomb.flush()
    assert len(gunzip(packed, 10_000)) == 10_000
    with pytest.raises(LimitReached):
        gunzip(packed, 9_999)
    with pytest.raises(LimitReached):
        gunzip(packed + packed, 19_999)
    with pytest.raises(BadRequest, match="more than 100 members"):
        gunzip(gzip.compress(b"", mtime=0) * 101, 10)


def test_a_deep_object_is_an_event_and_its_neighbour_too() -> None:
    deep = b'{"a":' * 10_000 + b"1" + b"}" * 10_000
    assert split(deep + b'\n{"a":1}') == [deep, b'{"a":1}']
