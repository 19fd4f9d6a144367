"""A caller whom a server of jobs has recognised, as it tells a job.

A *pass* says who asks, what they may do within the job, for which request and until when, under an
HMAC whose key only the server and that job have. So a job takes no user's word for who they are, a
pass that somebody finds is good for that one request and not for long, and a user's own token never
reaches a job, whose Python is its team's. It tells at most the whole job: users are the server's.

A job answers each pass with a *proof*, under the same key. So the server takes no answer of another
process that listens where the job did: loopback's ports are every user's of the machine.
tests/access/test_passing.py tries to forge one.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

import msgspec

from headrace.access.caller import Allowance, Caller
from headrace.access.object import Object, read_object
from headrace.access.operation import Operation
from headrace.core.errors import Unauthenticated
from headrace.core.time import SECOND

SCHEME = "Headrace-Pass"  # of the header Authorization
PROOF = "X-Headrace-Proof"  # a header of the answer
KEY_BYTES = 32
LIFE_US = 60 * SECOND


class Pass(msgspec.Struct, frozen=True, array_like=True):
    user: str
    token: str
    job: str
    granted: list[tuple[list[Operation], str]]
    may: list[Operation]
    on: list[str]
    asked: str
    until: int


def asked_for(method: str, target: bytes) -> str:
    """A request, as a pass names it: its method, path and query as they are sent."""
    return f"{method} {target.decode('latin-1')}"


def pass_of(caller: Caller, asked: str, key: bytes, now_us: int) -> str:
    """The pass of a caller within `caller.job`, for one request."""
    granted = [
        (sorted(grant.operations), str(part))
        for grant in caller.granted
        if (part := _within(grant.object, caller)) is not None
    ]
    # What the token does not carry stays so: were all of it left out, none would mean everything.
    on = [str(_within(part, caller) or part) for part in caller.on]
    said = Pass(
        caller.user, caller.token, caller.job, granted, sorted(caller.may), on, asked,
        now_us + LIFE_US,
    )  # fmt: skip
    text = base64.urlsafe_b64encode(msgspec.json.encode(said))
    return f"{text.decode()}.{_signature(text, key)}"


def _within(object: Object, caller: Caller) -> Object | None:
    """What of an object is in the job; None if nothing is."""
    if not object.kind:
        return caller.whole_job
    return None if object.kind == "job" and object != caller.whole_job else object


def read_pass(text: str, asked: str, key: bytes, now_us: int) -> Caller:
    """The caller that a pass stands for; Unauthenticated if it is not for this request."""
    said, _, signature = text.partition(".")
    if not hmac.compare_digest(_signature(said.encode(), key).encode(), signature.encode()):
        raise _refused()
    found = msgspec.json.decode(base64.urlsafe_b64decode(said), type=Pass)
    if found.asked != asked or found.until <= now_us:
        raise _refused()
    granted = tuple(Allowance(frozenset(may), read_object(on)) for may, on in found.granted)
    on = tuple(map(read_object, found.on))
    return Caller(found.user, found.token, found.job, granted, frozenset(found.may), on)


def proof_of(text: str, key: bytes) -> str:
    """What only the job of this key answers to a pass."""
    return _signature(f"proof {text}".encode(), key)


def _signature(text: bytes, key: bytes) -> str:
    return hmac.new(key, text, hashlib.sha256).hexdigest()


def _refused() -> Unauthenticated:
    return Unauthenticated(
        "this pass is not of this job's server, or not for this request",
        hint="ask the server of the job.",
    )
