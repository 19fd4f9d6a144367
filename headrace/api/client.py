"""The client of a project that runs in another process, over HTTP.

`RemoteService` is a Service: answers and errors have the same types as on the server, so the
command line does not know the difference. Events are not lost: a send that the server refuses with
429 or 503 is retried for a limited time, and a record is sent byte for byte.
tests/api/test_client.py calls each method and raises each error.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from headrace.access.caller import OWNER, Caller
from headrace.access.object import Object
from headrace.api.body import JSON, NDJSON, OCTET_STREAM, is_json
from headrace.api.errors import ErrorBody
from headrace.api.get_request import A, GetRequest, path_and_query, response_type
from headrace.api.remote_access import RemoteAccess
from headrace.api.remote_rules import RemoteRuleService
from headrace.api.remote_subscription import RemoteSubscription
from headrace.api.remote_watches import RemoteWatchService
from headrace.api.resources.query import QueryCancellation, QueryPlan
from headrace.api.service import RebuildResult
from headrace.api.shapes import AuditResults, Readiness, SendReceipt
from headrace.api.tls import is_loopback
from headrace.core import errors
from headrace.core.errors import EngineFailed, HeadraceError, Unavailable
from headrace.ingest.intake import Receipt
from headrace.serving.answer import Answer
from headrace.serving.store import AuditResult

TOKEN_VARIABLE = "HEADRACE_TOKEN"
RETRY_S_MAX = 30.0
TIMEOUT = httpx.Timeout(60.0, connect=5.0)
WORK_TIMEOUT = httpx.Timeout(3600.0, connect=5.0)  # a rebuild reads the whole history
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.05, 2.0
_TRY_AGAIN = frozenset({429, 503})
T = TypeVar("T")


class RemoteService:
    """A Service at a URL.

    with RemoteService("http://127.0.0.1:8080", token) as remote:
        remote.submit("clicks", [b'{"user":"ada"}']).result().accepted
    """

    start_command = "headrace run"

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        verify: ssl.SSLContext | None = None,
        retry_s_max: float = RETRY_S_MAX,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url = url.rstrip("/")
        self._retry_s_max, self._sleep, self._clock = retry_s_max, sleep, clock
        # Proxies of the environment are ignored: the other process is usually on this machine.
        # Loading certificates takes longer than a request, and plain HTTP does not need them.
        self._http = httpx.Client(
            base_url=self.url,
            timeout=TIMEOUT,
            trust_env=False,
            verify=verify or not self.url.startswith("http:"),
            headers=_headers(self.url, token),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def submit(self, stream: str, records: Sequence[bytes]) -> Future[Receipt]:
        """Send events, with retries while the server is overloaded; the future is done already."""
        future: Future[Receipt] = Future()
        path = f"/v1/streams/{quote(stream, safe='')}/events"
        try:
            future.set_result(total(self._post(path, *body) for body in _bodies(records)))
        except HeadraceError as error:
            future.set_exception(error)
        return future

    def import_part(self, stream: str, part: str) -> Receipt:
        """With retries while the server is overloaded: a part is taken once."""
        names = quote(stream, safe=""), quote(part, safe="")
        return self._post(f"/v1/streams/{names[0]}/imports/{names[1]}", OCTET_STREAM, b"")

    def ask(self, request: GetRequest[A]) -> A:
        path, params = path_and_query(request)
        timeout = WORK_TIMEOUT if request.endpoint.slow else TIMEOUT
        return self._ask(response_type(type(request)), "GET", path, params=params, timeout=timeout)

    def sql(
        self, text: str, limit: int | None = None, id: str | None = None, caller: Caller = OWNER
    ) -> Answer:
        """The server takes the caller from the token."""
        return self._ask(Answer, "POST", "/v1/sql", json={"sql": text, "limit": limit, "id": id})

    def cancel(self, id: str, caller: Caller = OWNER) -> bool:
        path = f"/v1/sql/{quote(id, safe='')}/cancel"
        return self._ask(QueryCancellation, "POST", path).stopped

    def query_plan(self, text: str, caller: Caller = OWNER) -> QueryPlan:
        return self._ask(QueryPlan, "POST", "/v1/sql/plan", json={"sql": text})

    def subscribed(self, text: str, caller: Caller) -> Object:
        """The server finds and checks the object itself."""
        return caller.whole_job

    def subscribe(
        self,
        text: str,
        after: str | None = None,
        news: Callable[[], None] = lambda: None,
        caller: Caller = OWNER,
    ) -> RemoteSubscription:
        """One connection, whose `take` waits for the next event; `news` is not called."""
        return self._subscribe("/v1/subscribe", {"sql": text}, after)

    def live(
        self, topics: Sequence[str], news: Callable[[], None] = lambda: None
    ) -> RemoteSubscription:
        """One connection, as with `subscribe`."""
        return self._subscribe("/v1/live", {"topics": ",".join(topics)})

    def _subscribe(
        self, path: str, params: Mapping[str, str], after: str | None = None
    ) -> RemoteSubscription:
        return RemoteSubscription(self._http, path, params, after, _error)

    @property
    def rule_service(self) -> RemoteRuleService:
        return RemoteRuleService(self._ask, partial(self._ask, timeout=WORK_TIMEOUT))

    @property
    def access(self) -> RemoteAccess:
        return RemoteAccess(self._ask)

    @property
    def watch_service(self) -> RemoteWatchService:
        return RemoteWatchService(self._ask, partial(self._ask, timeout=WORK_TIMEOUT))

    def ready(self) -> tuple[bool, str]:
        response = self._send("GET", "/readyz")
        if response.status_code == Unavailable.http_status:
            return False, _error(response).message
        answer = _decode(response, Readiness)
        return answer.ok, answer.reason

    def rebuild(self, view: str) -> RebuildResult:
        path = f"/v1/views/{quote(view, safe='')}/rebuild"
        return self._ask(RebuildResult, "POST", path, timeout=WORK_TIMEOUT)

    def audit(self, view: str | None = None) -> list[AuditResult]:
        body = {"view": view}
        return self._ask(AuditResults, "POST", "/v1/audit", json=body, timeout=WORK_TIMEOUT).audits

    def metrics(self) -> bytes:
        response = self._send("GET", "/metrics")
        if not response.is_success:
            raise _error(response)
        return response.content

    def _post(self, path: str, media: str, body: bytes) -> Receipt:
        deadline, wait_s = self._clock() + self._retry_s_max, _FIRST_WAIT_S
        while True:
            response = self._send("POST", path, content=body, headers={"Content-Type": media})
            pause_s = max(wait_s, _retry_after_s(response))
            late = self._clock() + pause_s > deadline
            if response.status_code not in _TRY_AGAIN or late:
                return _decode(response, SendReceipt).receipt()
            self._sleep(pause_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    def _ask(self, answer: type[T], method: str, path: str, **request: Any) -> T:
        return _decode(self._send(method, path, **request), answer)

    def _send(self, method: str, path: str, **request: Any) -> httpx.Response:
        try:
            return self._http.request(method, path, **request)
        except httpx.ConnectError as error:
            raise Unavailable(
                f"nothing is listening at {self.url}",
                detail=str(error),
                hint=f"is it running? start it with `{self.start_command}`",
            ) from error
        except (httpx.TransportError, httpx.InvalidURL) as error:
            # The request may have been executed. Only a caller who knows that the events have ids
            # can retry it.
            raise Unavailable(
                f"{self.url} did not respond", detail=f"{type(error).__name__}: {error}"
            ) from error


def _retry_after_s(response: httpx.Response) -> float:
    seconds = response.headers.get("Retry-After", "")
    return float(seconds) if seconds.isdecimal() else 0.0


def _bodies(records: Sequence[bytes]) -> list[tuple[str, bytes]]:
    """The requests that send these records unchanged: one, or if necessary one for each record."""
    if not records:
        return []
    if all(map(_is_line, records)):
        return [(NDJSON, b"\n".join(records))]
    if all(map(is_json, records)):
        return [(JSON, b"[" + b",".join(records) + b"]")]
    return [(OCTET_STREAM, record) for record in records]


def _is_line(record: bytes) -> bool:
    """Whether the record is unchanged after NDJSON is split into lines."""
    return b"\n" not in record and b"\r" not in record and not record.isspace() and record != b""


def total(receipts: Iterable[Receipt]) -> Receipt:
    """One receipt for several requests."""
    known = list(receipts)
    if len(known) == 1:
        return known[0]
    return Receipt(
        sum(receipt.accepted for receipt in known),
        sum(receipt.duplicates for receipt in known),
        sum(receipt.conflicts for receipt in known),
        tuple(span for receipt in known for span in receipt.offsets),
    )


def _headers(url: str, token: str | None) -> dict[str, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    # On one machine, compressing an answer takes longer than sending it.
    return (
        headers | {"Accept-Encoding": "identity"} if is_loopback(httpx.URL(url).host) else headers
    )


def _decode(response: httpx.Response, answer: type[T]) -> T:
    if not response.is_success:
        raise _error(response)
    try:
        return msgspec.json.decode(response.content, type=answer)
    except msgspec.DecodeError as error:
        raise EngineFailed(
            f"the response from {response.url} is not from a Headrace server", detail=str(error)
        ) from error


def _error(response: httpx.Response) -> HeadraceError:
    """The error of a response, as the class of its condition."""
    try:
        body = msgspec.json.decode(response.content, type=ErrorBody)
    except msgspec.DecodeError:
        return EngineFailed(
            f"{response.url} responded with status {response.status_code} and no Headrace error"
        )
    return error_of(body)


def error_of(body: ErrorBody) -> HeadraceError:
    """An error body as the class of its condition."""
    kind = _conditions().get(body.condition, EngineFailed)
    return kind(body.message, detail=body.detail, hint=body.hint, origin=body.origin)


def _conditions() -> dict[str, type[HeadraceError]]:
    kinds = (kind for kind in vars(errors).values() if isinstance(kind, type))
    return {kind.__name__: kind for kind in kinds if issubclass(kind, HeadraceError)}
