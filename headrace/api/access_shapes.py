"""The JSON of users, tokens, grants, sessions and the audit log."""

from __future__ import annotations

import msgspec

from headrace.access.audit_log import Entry
from headrace.access.token import Token
from headrace.access.user import Grant, User


class Users(msgspec.Struct, frozen=True):
    """All users."""

    users: list[User]


class UserQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A new user, and the role that they have on everything; without one they may do nothing."""

    name: str
    role: str | None = None


class Grants(msgspec.Struct, frozen=True):
    """Who may do what on which object."""

    grants: list[Grant]


class GrantQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A role or one operation, for a user, on an object."""

    user: str
    may: str
    on: str = "*"


class Tokens(msgspec.Struct, frozen=True):
    """Tokens without their secrets, the newest first."""

    tokens: list[Token]


class Done(msgspec.Struct, frozen=True):
    """It was done."""

    ok: bool


class AuditLog(msgspec.Struct, frozen=True):
    """The newest entries first."""

    entries: list[Entry]


class SessionQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a session is opened with: a token, or the code of the link that a run prints."""

    token: str | None = None
    code: str | None = None


class Allowed(msgspec.Struct, frozen=True):
    """What one grant allows."""

    may: str
    operations: list[str]
    on: str


class SessionReport(msgspec.Struct, frozen=True):
    """Who one is and what one may do; `may` and `on` are what the token is narrowed to."""

    user: str
    job: str
    granted: list[Allowed]
    may: list[str]
    on: list[str]
