"""Listening from a program: `headrace.subscribe` gives what a subscription says, for ever.

When the connection breaks, the server restarts, or this side was too slow, it comes back with the
id of the last event that it gave. A stream always goes on after it; whether a view could, `reset`
says.
tests/api/test_events.py cuts a connection and counts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from headrace.api.client import TOKEN_VARIABLE, Remote, error_of
from headrace.api.errors import ErrorShape
from headrace.api.hearing import RemoteHearing
from headrace.core.errors import Unavailable
from headrace.serving.subscriber import END, FAILED, SLOW

RETRY_S = 1.0


def subscribe(
    text: str,
    url: str = "http://127.0.0.1:8080",
    token: str | None = None,
    *,
    after: str | None = None,
    retry_s: float = RETRY_S,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[dict[str, Any]]:
    """Everything that a subscription says, for ever: {"event": …, "id": …, "data": …}.

    for heard in headrace.subscribe("SUBSCRIBE TO visitors EMIT ON TIME"):
        print(heard["data"])

    Without a token it is the one in HEADRACE_TOKEN. What it raises at once is an error of the text;
    later only what cannot be mended by trying.
    """
    with Remote(url, token or os.environ.get(TOKEN_VARIABLE)) as remote:
        yield from listen(remote, text, after, retry_s, sleep)


def listen(
    remote: Remote,
    text: str,
    after: str | None = None,
    retry_s: float = RETRY_S,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[dict[str, Any]]:
    """`subscribe`, over a connection that somebody else has and closes."""
    hearing = remote.subscribe(text, after)
    while True:
        try:
            for heard in hearing.poll():
                if heard.event == FAILED:
                    raise error_of(msgspec.convert(heard.data, ErrorShape))
                after = heard.id or after
                if heard.event not in (SLOW, END):
                    yield msgspec.to_builtins(heard)
            if not hearing.ended:
                continue
        except Unavailable:
            pass
        sleep(retry_s)
        hearing = _again(remote, text, after) or hearing


def _again(remote: Remote, text: str, after: str | None) -> RemoteHearing | None:
    try:
        return remote.subscribe(text, after)
    except Unavailable:
        return None
