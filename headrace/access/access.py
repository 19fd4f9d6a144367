"""Authentication, and changes of users, tokens and grants.

Each change is one transaction with its entry in the audit log, and applies from the next request.
tests/access/test_access.py checks it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace.access import audit_log, session, token, user
from headrace.access.audit_log import (
    ANONYMOUS,
    NEWEST,
    REFUSED,
    Actor,
    AuditDecision,
    AuditLog,
    AuditLogFilter,
    AuditLogVerification,
)
from headrace.access.authenticator import Authenticator
from headrace.access.caller import Caller
from headrace.access.delegation import read_delegated_token, response_signature
from headrace.access.file import AccessFile
from headrace.access.policy import DEFAULT_POLICY, AccessPolicy
from headrace.access.token import NewToken, Token, TokenRequest
from headrace.access.user import Grant, User
from headrace.core.errors import Unauthenticated
from headrace.core.time import DURATION_MAX, Clock, now_us


class Access:
    """The users of a project and their permissions; `job` is the project's name. A project that is
    a job has no users but `local`, and a key that it shares with its server.

    access = Access(state / "access.db", "shop")
    access.who(secret).check(Operation.READ, object_of("view", "visitors"))
    """

    def __init__(
        self,
        path: Path,
        job: str,
        clock: Clock = now_us,
        policy: AccessPolicy = DEFAULT_POLICY,
        server_key: bytes | None = None,
    ) -> None:
        self.job, self.clock, self.policy = job.lower(), clock, policy
        self._server_key = server_key
        self._file = AccessFile(path)
        self._codes = session.LoginCodes()
        self._authenticator = Authenticator(self._file, self.job, clock, policy, self._log_lockout)

    def close(self) -> None:
        self._file.close()

    # Authentication

    def authenticate_token(self, secret: str, address: str | None = None) -> Caller:
        """The caller of a token; Unauthenticated if the token is not valid, Overloaded if its
        address has failed too often.
        """
        return self._authenticator.by_token(secret, address)

    def recent_caller(self, secret: str) -> Caller | None:
        """The caller of a token that was authenticated within the last seconds, in memory."""
        return self._authenticator.recent_by_token(secret)

    def authenticate_session(self, secret: str, address: str | None = None) -> Caller:
        """The caller of a browser session."""
        return self._authenticator.by_session(secret, address)

    def _log_lockout(self, address: str) -> None:
        detail = f"{self.policy.failures_max} authentications from {address} failed within a minute"
        self.log(Actor(ANONYMOUS), "authenticate", "", REFUSED, detail)

    def authenticate_delegated(self, text: str, request: str) -> Caller:
        """The caller whom the job's server has authenticated, for one request."""
        if self._server_key is None:
            raise Unauthenticated(
                "this project is not run by a server, so delegated tokens are not accepted"
            )
        return read_delegated_token(text, request, self._server_key, self.clock())

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        with self._file.write() as db:
            yield db
        self._authenticator.invalidate()

    def _log_change(
        self, db: sqlite3.Connection, actor: Actor, what: str, on: str, detail: str = ""
    ) -> None:
        audit_log.append(db, actor, what, on, self.clock(), detail=detail)

    def response_signature_for(self, text: str) -> str | None:
        """Proves to the job's server that this job sent the response; None without a server."""
        return response_signature(text, self._server_key) if self._server_key else None

    # Users and grants

    def users(self) -> list[User]:
        with self._file.read() as db:
            return user.users(db)

    def add_user(self, name: str, role: str | None, actor: Actor) -> User:
        """Add a user; with a role, grant it on everything."""
        with self._change() as db:
            made = user.add_user(db, name, actor.user, self.clock())
            self._log_change(db, actor, "add_user", f"user:{name}")
            if role is not None:
                self._grant(db, name, role, "*", actor)
        return made

    def remove_user(self, name: str, actor: Actor) -> None:
        """Remove a user, with all tokens, sessions and grants."""
        with self._change() as db:
            user.remove_user(db, name)
            self._log_change(db, actor, "remove_user", f"user:{name}")

    def remove_users(self, actor: Actor) -> None:
        """Remove all users."""
        with self._change() as db:
            for found in user.remove_users(db):
                self._log_change(db, actor, "remove_user", f"user:{found.name}")

    def grants(self, of: str | None = None) -> list[Grant]:
        with self._file.read() as db:
            return user.grants(db, of)

    def add_grant(self, name: str, may: str, on: str, actor: Actor) -> Grant:
        with self._change() as db:
            return self._grant(db, name, may, on, actor)

    def _grant(self, db: sqlite3.Connection, name: str, may: str, on: str, actor: Actor) -> Grant:
        made = user.add_grant(db, name, may, on, actor.user, self.clock())
        self._log_change(db, actor, "add_grant", f"user:{name}", f"{made.may} on {made.on}")
        return made

    def remove_grant(self, name: str, may: str, on: str, actor: Actor) -> None:
        with self._change() as db:
            user.remove_grant(db, name, may, on)
            self._log_change(db, actor, "remove_grant", f"user:{name}", f"{may} on {on}")

    # Tokens and sessions

    def tokens(self, of: str | None = None) -> list[Token]:
        with self._file.read() as db:
            return token.tokens(db, of)

    def token(self, id: str) -> Token:
        with self._file.read() as db:
            return token.token(db, id)

    def create_token(
        self, request: TokenRequest, actor: Actor, *, for_run: bool = False
    ) -> NewToken:
        """Create a token; the token of a run ends with the run, so its lifetime has no limit."""
        life_max_us = DURATION_MAX if for_run else self.policy.token_life_max_us
        with self._change() as db:
            name = user.known_user(db, request.user or actor.user)
            made = token.create_token(db, name, request, self.clock(), life_max_us)
            self._log_change(db, actor, "create_token", f"token:{made.token.id}", f"of {name}")
        return made

    def revoke_token(self, id: str, actor: Actor) -> Token:
        with self._change() as db:
            gone = token.revoke_token(db, id, self.clock())
            self._log_change(db, actor, "revoke_token", f"token:{id}", f"of {gone.user}")
        return gone

    def open_session(self, id: str, actor: Actor) -> str:
        """Open a session of a token; returns its secret."""
        now = self.clock()
        with self._file.write() as db:
            secret = session.open_session(db, id, now, now + self.policy.session_life_us)
            self._log_change(db, actor, "open_session", f"token:{id}")
        return secret

    def end_session(self, secret: str, actor: Actor) -> None:
        with self._change() as db:
            session.end_session(db, secret)
            self._log_change(db, actor, "end_session", f"token:{actor.token}")

    def code(self, secret: str) -> str:
        """A code that opens one session of this token."""
        return self._codes.new(self.authenticate_token(secret).token, self.clock())

    def token_of_code(self, code: str, address: str | None = None) -> Token:
        """The token of a login code; a code works once."""
        id = self._authenticator.attempt(address, lambda: self._codes.take(code, self.clock()))
        return self.token(id)

    # The audit log

    def log(
        self, actor: Actor, what: str, on: str, decision: AuditDecision, detail: str = ""
    ) -> None:
        """Log a decision that was made elsewhere."""
        with self._file.write() as db:
            audit_log.append(db, actor, what, on, self.clock(), decision, detail)

    def audit_log(self, filter: AuditLogFilter = NEWEST) -> AuditLog:
        with self._file.search() as db:
            return audit_log.read(db, filter)

    def verify_audit_log(self) -> AuditLogVerification:
        """Whether every entry is unchanged since it was appended."""
        with self._file.search() as db:
            return audit_log.verify(db)
