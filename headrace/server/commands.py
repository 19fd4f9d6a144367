"""A command is carried out at most once, whatever dies in between.

It has an id, and what it changed and what it answered are written in one transaction. Sent again
with the same id it is answered from there. A command that was refused changed nothing and is not
kept, so it may be sent again. tests/server/test_commands.py kills a server around it.
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
from headrace.core.learned import learn
from headrace.server.records import Job

_ID = re.compile(r"[A-Za-z0-9._:-]{1,100}")


class CommandResult(msgspec.Struct, frozen=True):
    """What became of a command: the job as it is to be from then on."""

    command: str
    verb: str
    job: Job


@dataclass(frozen=True, slots=True)
class Command:
    """Who wants what. `asked` is all that the wish depends on."""

    verb: str
    job: str
    who: str
    asked: bytes = b""
    id: str = field(default_factory=lambda: secrets.token_hex(8))

    def called(self, id: str) -> Command:
        return replace(self, id=id)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.asked).hexdigest()


def checked_id(text: str) -> str:
    if not _ID.fullmatch(text):
        raise BadRequest("a command's id is up to 100 letters, digits, and any of . _ : -")
    return text


def find(db: sqlite3.Connection, command: Command) -> CommandResult | None:
    """What the command was answered, if it was carried out."""
    row = db.execute(
        "SELECT verb, job, asked, result FROM commands WHERE id = ?", (command.id,)
    ).fetchone()
    if row is None:
        return None
    if row[:3] != (command.verb, command.job, command.digest):
        raise Conflict(
            f"the id '{command.id}' is that of another command: {row[0]} {row[1]}",
            hint="each command needs an id of its own.",
        )
    return msgspec.json.decode(row[3], type=CommandResult)


def carry_out(
    db: sqlite3.Connection, command: Command, now_us: int, change: Callable[[], Job]
) -> CommandResult:
    """Make the change and note it, inside the caller's transaction; or tell what was noted."""
    if (before := find(db, command)) is not None:
        return before
    done = CommandResult(command.id, command.verb, change())
    said = command.id, command.verb, command.job, command.digest, command.who, now_us
    result = msgspec.json.encode(done).decode()
    db.execute("INSERT INTO commands VALUES (?, ?, ?, ?, ?, ?, ?)", (*said, result))
    return done


learn(CommandResult)
