"""Commands are idempotent: each is executed at most once, also across crashes.

A command has an id; its change and its result are written in one transaction, and a retry with the
same id gets that result. A refused command changed nothing and is not stored, so it can be retried.
tests/server/test_commands.py kills a server around it.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import msgspec

from headrace.core.errors import BadRequest, Conflict
from headrace.core.msgspec_types import prepare_types
from headrace.server.records import Job

_ID = re.compile(r"[A-Za-z0-9._:-]{1,100}")


class CommandResult(msgspec.Struct, frozen=True):
    """The result of a command: the desired state of the job."""

    command: str
    verb: str
    job: Job


@dataclass(frozen=True, slots=True)
class Command:
    """A change of a job by a user. `payload` is all input of the command, for comparing retries."""

    verb: str
    job: str
    user: str
    payload: bytes = b""
    id: str = field(default_factory=lambda: secrets.token_hex(8))

    def with_id(self, id: str) -> Command:
        return replace(self, id=id)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.payload).hexdigest()


def check_id(text: str) -> str:
    if not _ID.fullmatch(text):
        raise BadRequest("a command's id must be 1 to 100 letters, digits, or any of . _ : -")
    return text


def find(db: sqlite3.Connection, command: Command) -> CommandResult | None:
    """The result of the command, if it was executed."""
    row = db.execute(
        "SELECT verb, job, asked, result FROM commands WHERE id = ?", (command.id,)
    ).fetchone()
    if row is None:
        return None
    if row[:3] != (command.verb, command.job, command.digest):
        raise Conflict(
            f"the id '{command.id}' was used by another command: {row[0]} {row[1]}",
            hint="each command requires a unique id.",
        )
    return msgspec.json.decode(row[3], type=CommandResult)


def execute(
    db: sqlite3.Connection, command: Command, now_us: int, change: Callable[[], Job]
) -> CommandResult:
    """Make the change and store its result, inside the caller's transaction; or return the stored
    result.
    """
    if (before := find(db, command)) is not None:
        return before
    done = CommandResult(command.id, command.verb, change())
    row = command.id, command.verb, command.job, command.digest, command.user, now_us
    result = msgspec.json.encode(done).decode()
    db.execute("INSERT INTO commands VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, result))
    return done


prepare_types(CommandResult)
