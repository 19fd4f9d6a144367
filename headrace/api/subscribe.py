"""Subscriptions from a program: `headrace.subscribe` yields the events of a subscription endlessly.

After a lost connection, a restart of the server, or if this side was too slow, it reconnects with
the id of the last event. A stream always resumes after that id; a view that cannot sends `reset`.
tests/api/test_events.py cuts a connection and counts the events.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from headrace.api.client import TOKEN_VARIABLE, RemoteService, error_of
from headrace.api.errors import ErrorBody
from headrace.api.remote_subscription import RemoteSubscription
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
    """All events of a subscription, endlessly: {"event": …, "id": …, "data": …}.

    for event in headrace.subscribe("SUBSCRIBE TO visitors EMIT ON TIME"):
        print(event["data"])

    The default token is the one in HEADRACE_TOKEN. An error in the text is raised at once; later,
    only errors that a retry cannot fix.
    """
    with RemoteService(url, token or os.environ.get(TOKEN_VARIABLE)) as remote:
        yield from subscribe_remote(remote, text, after, retry_s, sleep)


def subscribe_remote(
    remote: RemoteService,
    text: str,
    after: str | None = None,
    retry_s: float = RETRY_S,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[dict[str, Any]]:
    """`subscribe` over an existing client, which the caller closes."""
    hearing = remote.subscribe(text, after)
    while True:
        try:
            for heard in hearing.poll():
                if heard.event == FAILED:
                    raise error_of(msgspec.convert(heard.data, ErrorBody))
                after = heard.id or after
                if heard.event not in (SLOW, END):
                    yield msgspec.to_builtins(heard)
            if not hearing.ended:
                continue
        except Unavailable:
            pass
        sleep(retry_s)
        hearing = _reconnect(remote, text, after) or hearing


def _reconnect(remote: RemoteService, text: str, after: str | None) -> RemoteSubscription | None:
    try:
        return remote.subscribe(text, after)
    except Unavailable:
        return None
