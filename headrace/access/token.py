"""Tokens authenticate users. A token may have a narrower scope than its user, expires, and can be
revoked. tests/access/test_access.py checks each.
"""

from __future__ import annotations

import secrets
import sqlite3
from typing import Any

import msgspec

from headrace.access.object import read_object
from headrace.access.operation import operations_of
from headrace.access.secret import TOKEN_PREFIX, digest, new_secret
from headrace.core.errors import BadRequest, NotFound
from headrace.core.time import DAY, duration_us, iso

NAME_MAX = 100
_COLUMNS = "id, user, name, may, objects, made_at, expires_at, revoked_at"


class TokenRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A new token; `may` and `on` are its scope, and empty ones include all of the user's."""

    user: str | None = None  # None: the caller
    name: str = ""
    may: list[str] = []
    on: list[str] = []
    life: str = msgspec.field(default="90 days", name="for")


class Token(msgspec.Struct, frozen=True):
    """A token without its secret."""

    id: str
    user: str
    name: str
    may: list[str]
    on: list[str]
    made_at: str
    expires_at: str
    revoked_at: str | None = None


class NewToken(msgspec.Struct, frozen=True):
    """A new token with its secret, which is shown once."""

    token: Token
    secret: str


def tokens(db: sqlite3.Connection, user: str | None = None) -> list[Token]:
    """All tokens, or those of one user, the newest first."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM tokens WHERE ?1 IS NULL OR user = ?1 ORDER BY made_at DESC, id",
        (user,),
    )
    return [_token(row) for row in rows]


def _token(row: tuple[Any, ...]) -> Token:
    id, user, name, may, on, made_at, expires_at, revoked_at = row
    return Token(
        id, user, name, msgspec.json.decode(may), msgspec.json.decode(on), iso(made_at),
        iso(expires_at), None if revoked_at is None else iso(revoked_at),
    )  # fmt: skip


def create_token(
    db: sqlite3.Connection, user: str, request: TokenRequest, now_us: int, life_max_us: int
) -> NewToken:
    """Create a token of a user."""
    for word in request.may:
        operations_of(word)
    on = [str(read_object(text)) for text in request.on]
    if len(request.name) > NAME_MAX or not request.name.isprintable():
        raise BadRequest(f"the name of a token must have at most {NAME_MAX} printable characters")
    secret, id = new_secret(TOKEN_PREFIX), secrets.token_hex(4)
    encode = msgspec.json.encode
    db.execute(
        "INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)",
        (
            id, user, request.name, digest(secret), encode(request.may), encode(on), now_us,
            now_us + _life_us(request.life, life_max_us),
        ),
    )  # fmt: skip
    return NewToken(token(db, id), secret)


def _life_us(text: str, most_us: int) -> int:
    try:
        life = duration_us(text)
    except ValueError as error:
        raise BadRequest(
            f"'{text[:40]}' is not a valid duration; expected one such as 30d"
        ) from error
    if life <= 0:
        raise BadRequest("the lifetime of a token must be positive")
    if life > most_us:
        raise BadRequest(
            f"a token is valid for at most {most_us / DAY:g} days, not {text[:40]}",
            hint="request a shorter lifetime, or raise the setting access.token_life_max.",
        )
    return life


def token(db: sqlite3.Connection, id: str) -> Token:
    row = db.execute(f"SELECT {_COLUMNS} FROM tokens WHERE id = ?", (id,)).fetchone()
    if row is None:
        raise NotFound(f"there is no token '{id[:40]}'", hint="`headrace token list` shows all.")
    return _token(row)


def revoke_token(db: sqlite3.Connection, id: str, now_us: int) -> Token:
    """Revoke a token; revoking it again changes nothing."""
    token(db, id)
    db.execute("UPDATE tokens SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?", (now_us, id))
    return token(db, id)
