"""Delegated tokens: how a server of jobs identifies an authenticated caller to a job.

A delegated token has the caller, their permissions within the job, the request and an expiry time,
signed by an HMAC whose key only the server and that job have. So a user cannot impersonate another
one, a leaked token works for one request only and expires soon, and a user's own token never
reaches a job, whose Python code belongs to its team. It grants at most the whole job: users belong
to the server.

A job signs its response to each delegated token with the same key. So the server rejects responses
of another process that listens on the job's port: any user of the machine can open a loopback port.
tests/access/test_delegation.py tries to forge one.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

import msgspec

from headrace.access.caller import Caller, Permission
from headrace.access.object import Object, read_object
from headrace.access.operation import Operation
from headrace.core.errors import Unauthenticated
from headrace.core.time import SECOND

DELEGATED_SCHEME = "Headrace-Pass"  # of the header Authorization
SIGNATURE_HEADER = "X-Headrace-Proof"  # a header of the response
KEY_BYTES = 32
LIFE_US = 60 * SECOND


class DelegatedToken(msgspec.Struct, frozen=True, array_like=True):
    user: str
    token: str
    job: str
    granted: list[tuple[list[Operation], str]]
    may: list[Operation]
    on: list[str]
    request: str
    expires_at: int


def request_line(method: str, target: bytes) -> str:
    """The method, path and query of a request as they are sent, for which a token is valid."""
    return f"{method} {target.decode('latin-1')}"


def delegated_token(caller: Caller, request: str, key: bytes, now_us: int) -> str:
    """The delegated token of a caller within `caller.job`, for one request."""
    granted = [
        (sorted(grant.operations), str(part))
        for grant in caller.granted
        if (part := _within(grant.object, caller)) is not None
    ]
    # Objects outside the job stay in the scope: an empty scope would mean everything.
    on = [str(_within(part, caller) or part) for part in caller.on]
    token = DelegatedToken(
        caller.user, caller.token, caller.job, granted, sorted(caller.may), on, request,
        now_us + LIFE_US,
    )  # fmt: skip
    text = base64.urlsafe_b64encode(msgspec.json.encode(token))
    return f"{text.decode()}.{_signature(text, key)}"


def _within(object: Object, caller: Caller) -> Object | None:
    """The part of an object that is in the job; None if there is none."""
    if not object.kind:
        return caller.whole_job
    return None if object.kind == "job" and object != caller.whole_job else object


def read_delegated_token(text: str, request: str, key: bytes, now_us: int) -> Caller:
    """The caller of a delegated token; Unauthenticated if it is not valid for this request."""
    token, _, signature = text.partition(".")
    if not hmac.compare_digest(_signature(token.encode(), key).encode(), signature.encode()):
        raise _not_valid()
    found = msgspec.json.decode(base64.urlsafe_b64decode(token), type=DelegatedToken)
    if found.request != request or found.expires_at <= now_us:
        raise _not_valid()
    granted = tuple(Permission(frozenset(may), read_object(on)) for may, on in found.granted)
    on = tuple(map(read_object, found.on))
    return Caller(found.user, found.token, found.job, granted, frozenset(found.may), on)


def response_signature(text: str, key: bytes) -> str:
    """The signature of a response, which only the job with this key can make."""
    return _signature(f"proof {text}".encode(), key)


def _signature(text: bytes, key: bytes) -> str:
    return hmac.new(key, text, hashlib.sha256).hexdigest()


def _not_valid() -> Unauthenticated:
    return Unauthenticated(
        "the delegated token was not issued by this job's server, or not for this request",
        hint="send the request to the server of the job.",
    )
