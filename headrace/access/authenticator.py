"""Finds the caller of a token or session.

Callers are cached for a few seconds, so that authentication costs microseconds per request;
`invalidate` follows every change, so a revoked token is refused at once. When an address has failed
too often, only secrets that were valid before are looked up: nothing can be guessed, and no known
caller is locked out by another client with the same address. An idle session expires.
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
from headrace.access.failures import AuthenticationFailures
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


class Authenticator:
    def __init__(
        self,
        file: AccessFile,
        job: str,
        clock: Clock,
        policy: AccessPolicy,
        on_lockout: Callable[[str], None],
    ) -> None:
        self._file, self._job, self._clock, self._policy = file, job, clock, policy
        self._on_lockout = on_lockout  # called with an address that has failed too often
        self._failures = AuthenticationFailures(policy.failures_max, clock)
        self._cache: dict[bytes, tuple[Caller, int]] = {}
        self._valid_before: dict[bytes, None] = {}  # digests that were valid once, oldest first
        self._changes, self._lock = 0, threading.Lock()

    def by_token(self, secret: str, address: str | None) -> Caller:
        return self._caller(digest(secret), _OF_TOKEN, address)

    def by_session(self, secret: str, address: str | None) -> Caller:
        return self._caller(digest(secret), _OF_SESSION, address)

    def recent_by_token(self, secret: str) -> Caller | None:
        """The caller of a token, if it was looked up within the last seconds."""
        return self._recent(digest(secret))

    def _recent(self, key: bytes) -> Caller | None:
        caller, until = self._cache.get(key, (None, 0))
        return caller if self._clock() < until else None

    def invalidate(self) -> None:
        """Empty the cache, after a change of users, tokens or grants."""
        with self._lock:
            self._changes += 1
            self._cache.clear()

    def attempt(self, address: str | None, find: Callable[[], T], valid_before: bool = False) -> T:
        """The result of `find`, unless the address has failed too often; a failure is counted. A
        secret that was valid before is not a guess, and a call without an address is local.
        """
        if address is None or valid_before:
            return find()
        self._failures.check(address)
        try:
            return find()
        except Unauthenticated:
            if self._failures.record(address):
                self._on_lockout(address)
            raise

    def _caller(self, key: bytes, query: str, address: str | None) -> Caller:
        if caller := self._recent(key):
            return caller
        now = self._clock()
        return self.attempt(
            address, lambda: self._look_up(key, query, now), key in self._valid_before
        )

    def _look_up(self, key: bytes, query: str, now: int) -> Caller:
        changes, idle = self._changes, self._policy.session_idle_us
        with self._file.read() as db:
            row = db.execute(query, {"key": key, "idle": idle}).fetchone()
            id, ends_at, used_at = row or ("", 0, None)
            if ends_at <= now:
                raise Unauthenticated(
                    "this token or session is not valid, or has expired",
                    hint="create another one: `headrace token create`.",
                )
            found = token.token(db, id)
            granted = user.permissions(db, found.user)
        if used_at is not None and now - used_at >= idle // 20:
            # Not at each request: every write waits for the disk. If the disk is full the session
            # is still valid, and at worst expires earlier.
            with contextlib.suppress(sqlite3.OperationalError), self._file.write() as db:
                touch_session(db, key, now)
        may = frozenset[Operation]().union(*map(operations_of, found.may))
        on = tuple(map(read_object, found.on))
        caller = Caller(found.user, id, self._job, granted, may, on)
        self._remember(key, caller, min(now + REMEMBERED_US, ends_at), changes)
        return caller

    def _remember(self, key: bytes, caller: Caller, until: int, changes: int) -> None:
        with self._lock:
            self._valid_before.pop(key, None)
            if len(self._valid_before) >= REMEMBERED_MAX:
                self._valid_before.pop(next(iter(self._valid_before)))
            self._valid_before[key] = None
            # A caller that was read before a change is not cached after it.
            if changes == self._changes:
                if len(self._cache) >= REMEMBERED_MAX:
                    self._cache.clear()
                self._cache[key] = caller, until
