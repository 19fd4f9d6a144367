"""A subscription to a project in another process, over HTTP.

It is one connection: it gives the events one by one, and ends with the connection.
headrace/api/subscribe.py reconnects. tests/api/test_events.py reads both on a real server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import httpx
import msgspec

from headrace.core.errors import Unavailable
from headrace.serving.subscriber import LAST, SubscriptionEvent

READ_TIMEOUT = httpx.Timeout(60.0, connect=5.0)  # longer than the interval of heartbeats


class RemoteSubscription:
    """The events of one connection."""

    def __init__(
        self,
        http: httpx.Client,
        path: str,
        params: Mapping[str, str],
        after: str | None,
        refused: Callable[..., Exception],
    ) -> None:
        headers = {"Last-Event-ID": after} if after is not None else {}
        request = http.build_request(
            "GET", path, params=dict(params), headers=headers, timeout=READ_TIMEOUT
        )
        try:
            self._response = http.send(request, stream=True)
            if not self._response.is_success:
                self._response.read()
        except httpx.HTTPError as error:
            raise _connection_lost(error) from error
        if not self._response.is_success:
            raise refused(self._response)
        self.ended = False
        self._lines = _lines(self._response)

    def poll(self, seconds: float = 0.0) -> list[SubscriptionEvent]:
        """The next event. It waits as long as the connection lives; `seconds` is ignored."""
        fields: dict[str, str] = {}
        try:
            for line in self._lines:
                if line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif "event" in fields:
                    return [self._heard(fields)]
                else:
                    fields = {}
        except httpx.HTTPError as error:
            raise _connection_lost(error) from error
        self.ended = True
        return []

    def _heard(self, fields: dict[str, str]) -> SubscriptionEvent:
        self.ended = fields["event"] in LAST
        return SubscriptionEvent(
            fields["event"], msgspec.json.decode(fields["data"]), fields.get("id")
        )

    def close(self) -> None:
        self.ended = True
        self._response.close()


def _lines(response: httpx.Response) -> Iterator[str]:
    """The lines of a response, split at newlines only: JSON may contain other characters at which
    Python's splitlines would split.
    """
    rest = b""
    for part in response.iter_bytes():
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            yield line.decode()


def _connection_lost(error: httpx.HTTPError) -> Unavailable:
    return Unavailable(
        "the subscription lost its connection", detail=f"{type(error).__name__}: {error}"
    )
