"""Users, tokens, grants and the audit log of a project, wherever it runs.

`access.access.Access` uses the file, `api.remote_access.RemoteAccess` another process over HTTP.
"""

from __future__ import annotations

from typing import Protocol

from headrace.access.audit_log import (
    NEWEST,
    Actor,
    AuditLog,
    AuditLogFilter,
    AuditLogVerification,
)
from headrace.access.token import NewToken, Token, TokenRequest
from headrace.access.user import Grant, User


class AccessService(Protocol):
    def users(self) -> list[User]: ...

    def add_user(self, name: str, role: str | None, actor: Actor) -> User:
        """Add a user; with a role, grant it on everything."""

    def remove_user(self, name: str, actor: Actor) -> None:
        """Remove a user, with all tokens, sessions and grants."""

    def grants(self, of: str | None = None) -> list[Grant]:
        """All grants, or those of one user."""

    def add_grant(self, name: str, may: str, on: str, actor: Actor) -> Grant: ...

    def remove_grant(self, name: str, may: str, on: str, actor: Actor) -> None: ...

    def tokens(self, of: str | None = None) -> list[Token]:
        """All tokens, or those of one user, the newest first."""

    def create_token(self, request: TokenRequest, actor: Actor) -> NewToken: ...

    def revoke_token(self, id: str, actor: Actor) -> Token: ...

    def audit_log(self, filter: AuditLogFilter = NEWEST) -> AuditLog:
        """The selected entries, and how many match."""

    def verify_audit_log(self) -> AuditLogVerification:
        """Whether every entry is unchanged since it was appended."""
