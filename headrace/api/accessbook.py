"""What can be asked and said of users, tokens, grants and the audit log, wherever the project runs.

`access.access.Access` answers from the file, `api.remote_access.RemoteAccess` asks another process.
"""

from __future__ import annotations

from typing import Protocol

from headrace.access.audit_log import NEWEST, By, Entry, Verified, Wanted
from headrace.access.token import NewToken, Token, TokenAsked
from headrace.access.user import Grant, User


class AccessBook(Protocol):
    def users(self) -> list[User]: ...

    def add_user(self, name: str, role: str | None, by: By) -> User:
        """Add a user; with a role, one who has it on everything."""

    def remove_user(self, name: str, by: By) -> None:
        """Remove a user, with all tokens, sessions and grants."""

    def grants(self, of: str | None = None) -> list[Grant]:
        """All grants, or those of one user."""

    def grant(self, name: str, may: str, on: str, by: By) -> Grant: ...

    def take_back(self, name: str, may: str, on: str, by: By) -> None: ...

    def tokens(self, of: str | None = None) -> list[Token]:
        """All tokens, or those of one user, the newest first."""

    def create_token(self, asked: TokenAsked, by: By) -> NewToken: ...

    def revoke_token(self, id: str, by: By) -> Token: ...

    def audit_log(self, wanted: Wanted = NEWEST) -> list[Entry]:
        """The entries that are wanted, the newest first; those after a number the oldest first."""

    def verify_audit_log(self) -> Verified:
        """Whether every entry is what was appended."""
