"""What is asked and changed about users: who is it, and the users, tokens and grants.

A caller is remembered for a few seconds, so that asking costs microseconds at each request; every
change made here forgets them all, so a revoked token is refused at once. Each change is one
transaction with its entry in the audit log. tests/access/test_access.py checks it.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace.access import audit_log, session, token, user
from headrace.access.audit_log import NEWEST, By, Decision, Entry, Wanted
from headrace.access.caller import Caller
from headrace.access.file import AccessFile
from headrace.access.object import read_object
from headrace.access.operation import Operation, operations_of
from headrace.access.passing import read_pass
from headrace.access.secret import digest
from headrace.access.token import NewToken, Token, TokenAsked
from headrace.access.user import Grant, User
from headrace.core.errors import Unauthenticated
from headrace.core.time import HOUR, SECOND, Clock, now_us

REMEMBERED_US, REMEMBERED_MAX = 5 * SECOND, 10_000
_OF_TOKEN = "SELECT id, expires_at FROM tokens WHERE digest = ? AND revoked_at IS NULL"
_OF_SESSION = (
    "SELECT t.id, min(s.expires_at, t.expires_at) "
    "FROM sessions s JOIN tokens t ON t.id = s.token WHERE s.digest = ? AND t.revoked_at IS NULL"
)


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
        session_life_us: int = 12 * HOUR,
        server_key: bytes | None = None,
    ) -> None:
        self.job, self.clock, self.session_life_us = job.lower(), clock, session_life_us
        self._server_key = server_key
        self._file = AccessFile(path)
        self._codes = session.Codes()
        self._remembered: dict[bytes, tuple[Caller, int]] = {}
        self._changes, self._remembering = 0, threading.Lock()

    def close(self) -> None:
        self._file.close()

    # Who is it

    def who(self, secret: str) -> Caller:
        """The caller that a token stands for; Unauthenticated if it stands for nobody."""
        return self._caller(digest(secret), _OF_TOKEN)

    def who_browses(self, secret: str) -> Caller:
        """The caller that a session stands for."""
        return self._caller(digest(secret), _OF_SESSION)

    def who_was_passed(self, text: str, asked: str) -> Caller:
        """The caller that the job's server has recognised, for one request."""
        if self._server_key is None:
            raise Unauthenticated("this project has no server that could vouch for anybody")
        return read_pass(text, asked, self._server_key, self.clock())

    def _caller(self, key: bytes, query: str) -> Caller:
        now = self.clock()
        caller, until = self._remembered.get(key, (None, 0))
        return caller if caller and now < until else self._looked_up(key, query, now)

    def _looked_up(self, key: bytes, query: str, now: int) -> Caller:
        changes = self._changes
        with self._file.read() as db:
            id, ends_at = db.execute(query, (key,)).fetchone() or ("", 0)
            if ends_at <= now:
                raise Unauthenticated(
                    "this token or session is not valid, or not any more",
                    hint="ask for another one: `headrace token create`.",
                )
            found = token.token(db, id)
            granted = user.allowances(db, found.user)
        may = frozenset[Operation]().union(*map(operations_of, found.may))
        on = tuple(map(read_object, found.on))
        caller = Caller(found.user, id, self.job, granted, may, on)
        self._remember(key, caller, min(now + REMEMBERED_US, ends_at), changes)
        return caller

    def _remember(self, key: bytes, caller: Caller, until: int, changes: int) -> None:
        with self._remembering:
            # What was read before a change that is made by now is not remembered.
            if changes == self._changes:
                if len(self._remembered) >= REMEMBERED_MAX:
                    self._remembered.clear()
                self._remembered[key] = caller, until

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        with self._file.write() as db:
            yield db
        with self._remembering:
            self._changes += 1
            self._remembered.clear()

    def _note(self, db: sqlite3.Connection, by: By, what: str, on: str, detail: str = "") -> None:
        audit_log.append(db, by, what, on, self.clock(), detail=detail)

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

    def create_token(self, asked: TokenAsked, by: By) -> NewToken:
        with self._change() as db:
            name = user.known_user(db, asked.user or by.user)
            made = token.create_token(db, name, asked, self.clock())
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
            secret = session.open_session(db, id, now, now + self.session_life_us)
            self._note(db, by, "open_session", f"token:{id}")
        return secret

    def end_session(self, secret: str, by: By) -> None:
        with self._change() as db:
            session.end_session(db, secret)
            self._note(db, by, "end_session", f"token:{by.token}")

    def code(self, secret: str) -> str:
        """A code that opens one session of this token."""
        return self._codes.new(self.who(secret).token, self.clock())

    def token_of_code(self, code: str) -> Token:
        """The token that a code stands for, once."""
        id = self._codes.take(code, self.clock())
        if id is None:
            raise Unauthenticated(
                "this link was used already, or is too old", hint="log in with a token."
            )
        return self.token(id)

    # The audit log

    def log(self, by: By, what: str, on: str, decision: Decision, detail: str = "") -> None:
        """Note a decision that was made elsewhere."""
        with self._file.write() as db:
            audit_log.append(db, by, what, on, self.clock(), decision, detail)

    def audit_log(self, wanted: Wanted = NEWEST) -> list[Entry]:
        with self._file.search() as db:
            return audit_log.entries(db, wanted)
