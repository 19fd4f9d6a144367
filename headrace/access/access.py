"""What is asked and changed about users: who is it, and the users, tokens and grants.

Each change is one transaction with its entry in the audit log, and counts at the next request.
tests/access/test_access.py checks it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace.access import audit_log, session, token, user
from headrace.access.audit_log import NEWEST, NOBODY, REFUSED, By, Decision, Entry, Verified, Wanted
from headrace.access.caller import Caller
from headrace.access.file import AccessFile
from headrace.access.passing import proof_of, read_pass
from headrace.access.policy import USUAL, AccessPolicy
from headrace.access.recognition import Recognition
from headrace.access.token import NewToken, Token, TokenAsked
from headrace.access.user import Grant, User
from headrace.core.errors import Unauthenticated
from headrace.core.time import DURATION_MAX, Clock, now_us


class Access:
    """The users of a project and what they may do; `job` is the project's name. A project that is
    a job has no users but `local`, and a key that it shares with its server.

    access = Access(state / "access.db", "shop")
    access.who(secret).check(Operation.READ, object_of("view", "visitors"))
    """

    def __init__(
        self,
        path: Path,
        job: str,
        clock: Clock = now_us,
        policy: AccessPolicy = USUAL,
        server_key: bytes | None = None,
    ) -> None:
        self.job, self.clock, self.policy = job.lower(), clock, policy
        self._server_key = server_key
        self._file = AccessFile(path)
        self._codes = session.Codes()
        self._known = Recognition(self._file, self.job, clock, policy, self._log_locked)

    def close(self) -> None:
        self._file.close()

    # Who is it

    def who(self, secret: str, address: str | None = None) -> Caller:
        """The caller that a token stands for; Unauthenticated if it stands for nobody, Overloaded
        if the address from which it comes has failed too often.
        """
        return self._known.of_token(secret, address)

    def who_browses(self, secret: str, address: str | None = None) -> Caller:
        """The caller that a session stands for."""
        return self._known.of_session(secret, address)

    def _log_locked(self, address: str) -> None:
        detail = f"{self.policy.failures_max} authentications of {address} failed within a minute"
        self.log(By(NOBODY), "authenticate", "", REFUSED, detail)

    def who_was_passed(self, text: str, asked: str) -> Caller:
        """The caller that the job's server has recognised, for one request."""
        if self._server_key is None:
            raise Unauthenticated("this project has no server that could vouch for anybody")
        return read_pass(text, asked, self._server_key, self.clock())

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        with self._file.write() as db:
            yield db
        self._known.forget()

    def _note(self, db: sqlite3.Connection, by: By, what: str, on: str, detail: str = "") -> None:
        audit_log.append(db, by, what, on, self.clock(), detail=detail)

    def proof(self, text: str) -> str | None:
        """What shows the job's server that it is this job that answers; None without a server."""
        return proof_of(text, self._server_key) if self._server_key else None

    # Users and grants

    def users(self) -> list[User]:
        with self._file.read() as db:
            return user.users(db)

    def add_user(self, name: str, role: str | None, by: By) -> User:
        """Add a user; with a role, one who has it on everything."""
        with self._change() as db:
            made = user.add_user(db, name, by.user, self.clock())
            self._note(db, by, "add_user", f"user:{name}")
            if role is not None:
                self._grant(db, name, role, "*", by)
        return made

    def remove_user(self, name: str, by: By) -> None:
        """Remove a user, with all tokens, sessions and grants."""
        with self._change() as db:
            user.remove_user(db, name)
            self._note(db, by, "remove_user", f"user:{name}")

    def remove_users(self, by: By) -> None:
        """Remove all of them."""
        with self._change() as db:
            for found in user.remove_users(db):
                self._note(db, by, "remove_user", f"user:{found.name}")

    def grants(self, of: str | None = None) -> list[Grant]:
        with self._file.read() as db:
            return user.grants(db, of)

    def grant(self, name: str, may: str, on: str, by: By) -> Grant:
        with self._change() as db:
            return self._grant(db, name, may, on, by)

    def _grant(self, db: sqlite3.Connection, name: str, may: str, on: str, by: By) -> Grant:
        made = user.add_grant(db, name, may, on, by.user, self.clock())
        self._note(db, by, "add_grant", f"user:{name}", f"{made.may} on {made.on}")
        return made

    def take_back(self, name: str, may: str, on: str, by: By) -> None:
        with self._change() as db:
            user.remove_grant(db, name, may, on)
            self._note(db, by, "remove_grant", f"user:{name}", f"{may} on {on}")

    # Tokens and sessions

    def tokens(self, of: str | None = None) -> list[Token]:
        with self._file.read() as db:
            return token.tokens(db, of)

    def token(self, id: str) -> Token:
        with self._file.read() as db:
            return token.token(db, id)

    def create_token(self, asked: TokenAsked, by: By, *, of_a_run: bool = False) -> NewToken:
        """Make a token; one of a run ends with the run, so there is no bound to its life."""
        life_max_us = DURATION_MAX if of_a_run else self.policy.token_life_max_us
        with self._change() as db:
            name = user.known_user(db, asked.user or by.user)
            made = token.create_token(db, name, asked, self.clock(), life_max_us)
            self._note(db, by, "create_token", f"token:{made.token.id}", f"of {name}")
        return made

    def revoke_token(self, id: str, by: By) -> Token:
        with self._change() as db:
            gone = token.revoke_token(db, id, self.clock())
            self._note(db, by, "revoke_token", f"token:{id}", f"of {gone.user}")
        return gone

    def open_session(self, id: str, by: By) -> str:
        """A session of a token; its secret."""
        now = self.clock()
        with self._file.write() as db:
            secret = session.open_session(db, id, now, now + self.policy.session_life_us)
            self._note(db, by, "open_session", f"token:{id}")
        return secret

    def end_session(self, secret: str, by: By) -> None:
        with self._change() as db:
            session.end_session(db, secret)
            self._note(db, by, "end_session", f"token:{by.token}")

    def code(self, secret: str) -> str:
        """A code that opens one session of this token."""
        return self._codes.new(self.who(secret).token, self.clock())

    def token_of_code(self, code: str, address: str | None = None) -> Token:
        """The token that a code stands for, once."""
        id = self._known.tried(address, lambda: self._codes.take(code, self.clock()))
        return self.token(id)

    # The audit log

    def log(self, by: By, what: str, on: str, decision: Decision, detail: str = "") -> None:
        """Note a decision that was made elsewhere."""
        with self._file.write() as db:
            audit_log.append(db, by, what, on, self.clock(), decision, detail)

    def audit_log(self, wanted: Wanted = NEWEST) -> list[Entry]:
        with self._file.search() as db:
            return audit_log.entries(db, wanted)

    def verify_audit_log(self) -> Verified:
        """Whether every entry is what was appended."""
        with self._file.search() as db:
            return audit_log.verify(db)
