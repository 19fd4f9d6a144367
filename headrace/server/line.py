"""The one place from which requests go to jobs: the heartbeat's, and those passed on for callers.

What is passed on is not read: body and answer stream through as they come, and events of a
subscription at once, as long as the caller may hear them. Headers that speak of one connection stay
on it. Whatever a job is told beside the caller's own words is in `said_to`.
tests/server/test_line.py passes on to a real server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass

import httpx
import msgspec
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from headrace.access.caller import Caller
from headrace.access.passing import SCHEME, asked_for, pass_of
from headrace.api.client import WORK_TIMEOUT
from headrace.api.errors import ErrorShape
from headrace.api.guard import SAFE_METHODS
from headrace.core.errors import Unavailable
from headrace.core.time import now_us

BEAT_S_MAX = 5.0
_CONNECTIONS = httpx.Limits(max_connections=512, max_keepalive_connections=64)
# Those of one connection (RFC 9110, 7.6.1), and those that this server says itself.
_OWN = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection",
    "te", "trailer", "transfer-encoding", "upgrade", "host", "origin", "date", "cache-control",
    # A user's token and session are for the server, and a job's Python is its team's.
    "authorization", "cookie", "set-cookie",
})  # fmt: skip
Pairs = list[tuple[str, str]]


def said_to(caller: Caller, method: str, target: bytes, key: bytes) -> dict[str, str]:
    """What the server itself tells a job with each request: who asks, as only it can say."""
    text = pass_of(caller, asked_for(method, target), key, now_us())
    return {"Authorization": f"{SCHEME} {text}"}


@dataclass(frozen=True, slots=True)
class Ask:
    """A request that is passed on: for which path and query, of whom. It is broken off when `lasts`
    says that the caller is not the same any more, or may do something else.
    """

    target: bytes
    caller: Caller
    lasts: Callable[[], bool] = lambda: True


class Line:
    """Requests to the jobs of a server."""

    def __init__(self) -> None:
        self._beats = httpx.Client(trust_env=False, verify=False, timeout=BEAT_S_MAX)
        self._passing = httpx.AsyncClient(
            trust_env=False, verify=False, timeout=WORK_TIMEOUT, limits=_CONNECTIONS
        )

    def close(self) -> None:
        self._beats.close()

    async def aclose(self) -> None:
        await self._passing.aclose()

    def alive(self, url: str) -> bool:
        """Whether the job answers at all."""
        answer = self._beat(url + "/livez")
        return answer is not None and answer.is_success

    def ready(self, url: str) -> tuple[bool, str]:
        """Whether it answers questions, and if not, why."""
        answer = self._beat(url + "/readyz")
        if answer is None:
            return False, "it is starting"
        return answer.is_success, "" if answer.is_success else _message(answer.content)

    def _beat(self, url: str) -> httpx.Response | None:
        """Of what everybody may ask."""
        try:
            return self._beats.get(url)
        except httpx.HTTPError:
            return None

    async def pass_on(
        self, job: str, url: str, key: bytes, request: Request, ask: Ask
    ) -> Passed | None:
        """The job's answer to a request, as it comes; None if the job could not be reached or the
        question can be asked again, so that nothing was done.
        """
        said = said_to(ask.caller, request.method, ask.target, key)
        asked = self._passing.build_request(
            request.method,
            httpx.URL(url).copy_with(raw_path=ask.target),
            headers=[*_kept(request.headers.items()), *said.items()],
            content=request.stream() if _has_body(request) else None,
        )
        try:
            return Passed(await self._passing.send(asked, stream=True), ask.lasts)
        except httpx.ConnectError:
            return None
        except httpx.TransportError as error:
            if request.method in SAFE_METHODS:
                return None
            raise Unavailable(
                f"job '{job}' broke off before it answered",
                detail="the request was carried out or not.",
                hint="events with an id can be sent again.",
            ) from error


class Passed(StreamingResponse):
    """A job's answer on its way to the caller; let go of however the connection ends."""

    def __init__(self, answer: httpx.Response, lasts: Callable[[], bool]) -> None:
        self._answer = answer
        super().__init__(_parts(answer, lasts), answer.status_code)
        raw = ((name.lower(), value) for name, value in answer.headers.raw)
        self.raw_headers = [(n, v) for n, v in raw if n.decode("latin-1") not in _OWN]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._answer.aclose()


async def _parts(answer: httpx.Response, lasts: Callable[[], bool]) -> AsyncIterator[bytes]:
    async for part in answer.aiter_raw():
        if not lasts():
            return
        yield part


def _message(content: bytes) -> str:
    try:
        return msgspec.json.decode(content, type=ErrorShape).message
    except msgspec.DecodeError:
        return "it is not ready"


def _kept(headers: Iterable[tuple[str, str]]) -> Pairs:
    return [(name, value) for name, value in headers if name.lower() not in _OWN]


def _has_body(request: Request) -> bool:
    return "content-length" in request.headers or "transfer-encoding" in request.headers
