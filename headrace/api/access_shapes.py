"""The JSON of users, tokens, grants and sessions."""

from __future__ import annotations

import msgspec

from headrace.access.token import Token
from headrace.access.user import Grant, User


class UserList(msgspec.Struct, frozen=True):
    """All users."""

    users: list[User]


class UserRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A new user, and their role on everything; without one they have no permissions."""

    name: str
    role: str | None = None


class GrantList(msgspec.Struct, frozen=True):
    """Which user has which role or operation on which object."""

    grants: list[Grant]


class GrantRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A role or one operation, for a user, on an object."""

    user: str
    may: str
    on: str = "*"


class TokenList(msgspec.Struct, frozen=True):
    """Tokens without their secrets, the newest first."""

    tokens: list[Token]


class OkResponse(msgspec.Struct, frozen=True):
    """The request succeeded."""

    ok: bool


class SessionRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The credentials of a new session: a token, or the code of the link that a run prints."""

    token: str | None = None
    code: str | None = None


class SessionGrant(msgspec.Struct, frozen=True):
    """A grant, with its operations."""

    may: str
    operations: list[str]
    on: str


class SessionReport(msgspec.Struct, frozen=True):
    """The caller and their grants; `may` and `on` are the scope of the token."""

    user: str
    job: str
    granted: list[SessionGrant]
    may: list[str]
    on: list[str]
