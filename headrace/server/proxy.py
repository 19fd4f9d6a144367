"""The reverse proxy to jobs: all requests of the server to jobs, for heartbeats, for their health
and for callers.

Bodies and responses are streamed, and events of a subscription at once, as long as the caller may
read them. Hop-by-hop headers are dropped. Each job has its own connection pool, so that a job that
hangs blocks no other. `delegation_headers` is all that the server adds to a request; a response
without the job's signature comes from another process, and is dropped.
tests/server/test_proxy.py forwards to a real server.
"""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Literal

import httpx
import msgspec
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from headrace.access.caller import Caller, Permission
from headrace.access.delegation import (
    DELEGATED_SCHEME,
    SIGNATURE_HEADER,
    delegated_token,
    request_line,
    response_signature,
)
from headrace.access.operation import Operation
from headrace.access.user import LOCAL
from headrace.api.client import WORK_TIMEOUT
from headrace.api.errors import ErrorBody
from headrace.api.security import SAFE_METHODS
from headrace.core.errors import Overloaded, Unavailable
from headrace.core.problems import Problem
from headrace.core.time import now_us

HEARTBEAT_S_MAX = 5.0
_STATUS = "/v1/status"
_CONNECTIONS = httpx.Limits(max_connections=512, max_keepalive_connections=64)
_WAIT_S_MAX = 1.0  # for a free connection
# Hop-by-hop headers (RFC 9110, 7.6.1), and those that this server sets itself.
_DROPPED_HEADERS = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection",
    "te", "trailer", "transfer-encoding", "upgrade", "host", "origin", "date", "cache-control",
    # A user's token and session must not reach a job, whose Python code belongs to its team.
    "authorization", "cookie", "set-cookie", SIGNATURE_HEADER.lower(),
})  # fmt: skip
Pairs = list[tuple[bytes, bytes]]


def delegation_headers(text: str) -> Pairs:
    """The headers that the server adds to each request: the caller, in a delegated token."""
    return [(b"Authorization", f"{DELEGATED_SCHEME} {text}".encode())]


@dataclass(frozen=True, slots=True)
class ProxyRequest:
    """A request to forward: its path and query, and its caller. The response ends when
    `still_allowed` returns False, because the caller or their permissions have changed.
    """

    target: bytes
    caller: Caller
    still_allowed: Callable[[], bool] = lambda: True


class JobHealth(msgspec.Struct, frozen=True):
    """The state and the problems of a job, as its own status has them."""

    state: Literal["starting", "running", "degraded", "stopping"]
    reason: str = ""
    problems: list[Problem] = []

    @property
    def explanation(self) -> str:
        """Why it is in this state, or what is slow or behind while it is running."""
        return self.reason or "; ".join(problem.message for problem in self.problems)


class JobProxy:
    """Requests to the jobs of a server."""

    def __init__(self) -> None:
        # On one machine, compressing a response takes longer than sending it.
        self._heartbeats = httpx.Client(
            trust_env=False, timeout=HEARTBEAT_S_MAX, headers={"Accept-Encoding": "identity"}
        )
        self._clients: dict[str, httpx.AsyncClient] = {}  # by the names of jobs

    def close(self) -> None:
        self._heartbeats.close()

    async def aclose(self) -> None:
        for client in self._clients.values():
            await client.aclose()

    def _client(self, job: str) -> httpx.AsyncClient:
        if job not in self._clients:
            self._clients[job] = httpx.AsyncClient(
                trust_env=False,
                # By default httpx would accept gzip, also for a caller who does not.
                headers={"Accept-Encoding": "identity"},
                timeout=httpx.Timeout(**{**WORK_TIMEOUT.as_dict(), "pool": _WAIT_S_MAX}),
                limits=_CONNECTIONS,
                # Cookies of a job must not be sent with requests of other callers.
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            )
        return self._clients[job]

    def alive(self, url: str) -> bool:
        """Liveness: whether the job responds."""
        answer = self._get(url + "/livez")
        return answer is not None and answer.is_success

    def health(self, job: str, url: str, key: bytes) -> JobHealth:
        """The job's own status; Unavailable if it does not respond with one."""
        caller = Caller(LOCAL, "", job, (Permission.of(Operation.READ, f"job:{job}"),))
        text = delegated_token(caller, request_line("GET", _STATUS.encode()), key, now_us())
        answer = self._get(url + _STATUS, delegation_headers(text))
        if answer is None or not _signed(answer, text, key):
            raise Unavailable("it did not respond")
        if not answer.is_success:
            raise Unavailable(_message(answer))
        try:
            return msgspec.json.decode(answer.content, type=JobHealth)
        except msgspec.DecodeError as error:
            raise Unavailable(f"the response is not a status: {error}") from error

    def _get(self, url: str, headers: Sequence[tuple[bytes, bytes]] = ()) -> httpx.Response | None:
        """None if there is no response."""
        try:
            return self._heartbeats.get(url, headers=headers)
        except httpx.HTTPError:
            return None

    async def forward(
        self, job: str, url: str, key: bytes, request: Request, proxied: ProxyRequest
    ) -> ProxiedResponse | None:
        """The job's response, streamed; None if the job could not be reached, another process
        responded, or a safe method failed, so that nothing was changed.
        """
        text = delegated_token(
            proxied.caller, request_line(request.method, proxied.target), key, now_us()
        )
        client = self._client(job)
        forwarded = client.build_request(
            request.method,
            httpx.URL(url).copy_with(raw_path=proxied.target),
            headers=[*_forwarded_headers(request.headers.raw), *delegation_headers(text)],
            content=request.stream() if _has_body(request) else None,
        )
        try:
            answer = await client.send(forwarded, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            return None
        except httpx.PoolTimeout as error:
            raise Overloaded(
                f"job '{job}' has too many requests in progress",
                detail=f"the limit is {_CONNECTIONS.max_connections}; nothing was executed.",
                hint="retry later.",
            ) from error
        except httpx.TransportError as error:
            if request.method in SAFE_METHODS:
                return None
            raise Unavailable(
                f"job '{job}' closed the connection before it responded",
                detail="the request may have been executed.",
                hint="events with an id can be sent again.",
            ) from error
        if _signed(answer, text, key):
            return ProxiedResponse(answer, proxied.still_allowed)
        await answer.aclose()
        return None


class ProxiedResponse(StreamingResponse):
    """A job's response, streamed to the caller; always closed when the connection ends."""

    def __init__(self, answer: httpx.Response, still_allowed: Callable[[], bool]) -> None:
        self._answer = answer
        super().__init__(_parts(answer, still_allowed), answer.status_code)
        raw = ((name.lower(), value) for name, value in answer.headers.raw)
        self.raw_headers = [(n, v) for n, v in raw if n.decode("latin-1") not in _DROPPED_HEADERS]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Close the response of the job, also if it was never sent."""
        await self._answer.aclose()


async def _parts(answer: httpx.Response, still_allowed: Callable[[], bool]) -> AsyncIterator[bytes]:
    async for part in answer.aiter_raw():
        if not still_allowed():
            return
        yield part


def _signed(answer: httpx.Response, text: str, key: bytes) -> bool:
    """Whether the job has signed its response to a delegated token."""
    signature = answer.headers.get(SIGNATURE_HEADER, "")
    return hmac.compare_digest(signature, response_signature(text, key))


def _message(answer: httpx.Response) -> str:
    try:
        return msgspec.json.decode(answer.content, type=ErrorBody).message
    except msgspec.DecodeError:
        return f"it responded with status {answer.status_code}"


def _forwarded_headers(headers: Iterable[tuple[bytes, bytes]]) -> Pairs:
    return [
        (n, value) for n, value in headers if n.decode("latin-1").lower() not in _DROPPED_HEADERS
    ]


def _has_body(request: Request) -> bool:
    return "content-length" in request.headers or "transfer-encoding" in request.headers
