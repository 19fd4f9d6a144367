"""Who a secret stands for.

A caller is remembered for a few seconds, so that asking costs microseconds at each request;
`forget` follows every change, so a revoked token is refused at once. Where an address has failed
too often, only secrets that were good before are looked up: nothing can be guessed, and nobody who
is known is locked out by another of the same address. A session ends when it was not used for a
while.
tests/access/test_access.py and tests/access/test_failures.py check it.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable
from typing import TypeVar

from headrace.access import token, user
from headrace.access.caller import Caller
from headrace.access.failures import Failures
from headrace.access.file import AccessFile
from headrace.access.object import read_object
from headrace.access.operation import Operation, operations_of
from headrace.access.policy import AccessPolicy
from headrace.access.secret import digest
from headrace.access.session import touch_session
from headrace.core.errors import Unauthenticated
from headrace.core.time import SECOND, Clock

REMEMBERED_US, REMEMBERED_MAX = 5 * SECOND, 10_000
_OF_TOKEN = "SELECT id, expires_at, NULL FROM tokens WHERE digest = :key AND revoked_at IS NULL"
_OF_SESSION = (
    "SELECT t.id, min(s.expires_at, t.expires_at, s.used_at + :idle), s.used_at "
    "FROM sessions s JOIN tokens t ON t.id = s.token WHERE s.digest = :key AND t.revoked_at IS NULL"
)
T = TypeVar("T")


class Recognition:
    def __init__(
        self,
        file: AccessFile,
        job: str,
        clock: Clock,
        policy: AccessPolicy,
        locked: Callable[[str], None],
    ) -> None:
        self._file, self._job, self._clock, self._policy = file, job, clock, policy
        self._locked = locked  # is told an address that has failed too often
        self._failures = Failures(policy.failures_max, clock)
        self._remembered: dict[bytes, tuple[Caller, int]] = {}
        self._good: dict[bytes, None] = {}  # secrets that were valid once, the oldest first
        self._changes, self._lock = 0, threading.Lock()

    def of_token(self, secret: str, address: str | None) -> Caller:
        return self._caller(digest(secret), _OF_TOKEN, address)

    def of_session(self, secret: str, address: str | None) -> Caller:
        return self._caller(digest(secret), _OF_SESSION, address)

    def forget(self) -> None:
        """Something about users has changed."""
        with self._lock:
            self._changes += 1
            self._remembered.clear()

    def tried(self, address: str | None, find: Callable[[], T], known: bool = False) -> T:
        """What is found, unless the address has failed too often; a failure counts. What was valid
        once is no guess, and without an address it is not somebody else who tries.
        """
        if address is None or known:
            return find()
        self._failures.check(address)
        try:
            return find()
        except Unauthenticated:
            if self._failures.note(address):
                self._locked(address)
            raise

    def _caller(self, key: bytes, query: str, address: str | None) -> Caller:
        now = self._clock()
        caller, until = self._remembered.get(key, (None, 0))
        if caller and now < until:
            return caller
        return self.tried(address, lambda: self._looked_up(key, query, now), key in self._good)

    def _looked_up(self, key: bytes, query: str, now: int) -> Caller:
        changes, idle = self._changes, self._policy.session_idle_us
        with self._file.read() as db:
            row = db.execute(query, {"key": key, "idle": idle}).fetchone()
            id, ends_at, used_at = row or ("", 0, None)
            if ends_at <= now:
                raise Unauthenticated(
                    "this token or session is not valid, or not any more",
                    hint="ask for another one: `headrace token create`.",
                )
            found = token.token(db, id)
            granted = user.allowances(db, found.user)
        if used_at is not None and now - used_at >= idle // 20:
            # Not at each request: every write waits for the disk. On a full one the session is
            # still valid, and ends earlier at worst.
            with contextlib.suppress(sqlite3.OperationalError), self._file.write() as db:
                touch_session(db, key, now)
        may = frozenset[Operation]().union(*map(operations_of, found.may))
        on = tuple(map(read_object, found.on))
        caller = Caller(found.user, id, self._job, granted, may, on)
        self._remember(key, caller, min(now + REMEMBERED_US, ends_at), changes)
        return caller

    def _remember(self, key: bytes, caller: Caller, until: int, changes: int) -> None:
        with self._lock:
            self._good.pop(key, None)
            if len(self._good) >= REMEMBERED_MAX:
                self._good.pop(next(iter(self._good)))
            self._good[key] = None
            # What was read before a change that is made by now is not remembered.
            if changes == self._changes:
                if len(self._remembered) >= REMEMBERED_MAX:
                    self._remembered.clear()
                self._remembered[key] = caller, until
