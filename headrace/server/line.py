"""The one place from which requests go to jobs: the heartbeat's, and those passed on for callers.

What is passed on is not read: body and answer stream through as they come, and events of a
subscription at once, as long as the caller may hear them. Headers that speak of one connection stay
on it. Each job has connections of its own, so that one that hangs takes them from no other.
Whatever a job is told beside the caller's own words is in `said_to`; an answer without the job's
proof is another process's, and is not passed on.
tests/server/test_line.py passes on to a real server.
"""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx
import msgspec
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from headrace.access.caller import Caller
from headrace.access.passing import PROOF, SCHEME, asked_for, pass_of, proof_of
from headrace.api.client import WORK_TIMEOUT
from headrace.api.errors import ErrorShape
from headrace.api.guard import SAFE_METHODS
from headrace.core.errors import Overloaded, Unavailable
from headrace.core.time import now_us

BEAT_S_MAX = 5.0
_CONNECTIONS = httpx.Limits(max_connections=512, max_keepalive_connections=64)
_WAIT_S_MAX = 1.0  # for one of them to be free
# Those of one connection (RFC 9110, 7.6.1), and those that this server says itself.
_OWN = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection",
    "te", "trailer", "transfer-encoding", "upgrade", "host", "origin", "date", "cache-control",
    # A user's token and session are for the server, and a job's Python is its team's.
    "authorization", "cookie", "set-cookie", PROOF.lower(),
})  # fmt: skip
Pairs = list[tuple[bytes, bytes]]


def said_to(text: str) -> Pairs:
    """What the server itself tells a job with each request: who asks, as only it can say."""
    return [(b"Authorization", f"{SCHEME} {text}".encode())]


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
        self._beats = httpx.Client(trust_env=False, timeout=BEAT_S_MAX)
        self._passing: dict[str, httpx.AsyncClient] = {}  # by the names of jobs

    def close(self) -> None:
        self._beats.close()

    async def aclose(self) -> None:
        for client in self._passing.values():
            await client.aclose()

    def _to(self, job: str) -> httpx.AsyncClient:
        if job not in self._passing:
            self._passing[job] = httpx.AsyncClient(
                trust_env=False,
                # httpx would accept gzip for a caller who does not.
                headers={"Accept-Encoding": "identity"},
                timeout=httpx.Timeout(**{**WORK_TIMEOUT.as_dict(), "pool": _WAIT_S_MAX}),
                limits=_CONNECTIONS,
                # What a job would have a browser keep is nothing for its next caller.
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            )
        return self._passing[job]

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
        """The job's answer to a request, as it comes; None if the job could not be reached, another
        process answered, or the question can be asked again, so that nothing was done.
        """
        text = pass_of(ask.caller, asked_for(request.method, ask.target), key, now_us())
        client = self._to(job)
        asked = client.build_request(
            request.method,
            httpx.URL(url).copy_with(raw_path=ask.target),
            headers=[*_kept(request.headers.raw), *said_to(text)],
            content=request.stream() if _has_body(request) else None,
        )
        try:
            answer = await client.send(asked, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            return None
        except httpx.PoolTimeout as error:
            raise Overloaded(
                f"job '{job}' has more requests in progress than the server passes on",
                detail=f"{_CONNECTIONS.max_connections} at once; nothing of this one was done.",
                hint="ask again in a moment.",
            ) from error
        except httpx.TransportError as error:
            if request.method in SAFE_METHODS:
                return None
            raise Unavailable(
                f"job '{job}' broke off before it answered",
                detail="the request was carried out or not.",
                hint="events with an id can be sent again.",
            ) from error
        if hmac.compare_digest(answer.headers.get(PROOF, ""), proof_of(text, key)):
            return Passed(answer, ask.lasts)
        await answer.aclose()
        return None


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
            await self.aclose()

    async def aclose(self) -> None:
        """Let go of it, also if it was never sent."""
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


def _kept(headers: Iterable[tuple[bytes, bytes]]) -> Pairs:
    return [(n, value) for n, value in headers if n.decode("latin-1").lower() not in _OWN]


def _has_body(request: Request) -> bool:
    return "content-length" in request.headers or "transfer-encoding" in request.headers
