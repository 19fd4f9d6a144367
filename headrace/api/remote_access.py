"""The client of users, tokens and grants of a project in another process, over HTTP.

The server takes the actor from the token. tests/api/test_users.py calls each method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import msgspec

from headrace.access.audit_log import (
    NEWEST,
    Actor,
    AuditLog,
    AuditLogFilter,
    AuditLogVerification,
)
from headrace.access.token import NewToken, Token, TokenRequest
from headrace.access.user import Grant, User
from headrace.api.access_shapes import GrantList, OkResponse, TokenList, UserList


class RemoteAccess:
    """`ask` sends a request and decodes the response."""

    def __init__(self, ask: Callable[..., Any]) -> None:
        self._ask = ask

    def users(self) -> list[User]:
        found: UserList = self._ask(UserList, "GET", "/v1/users")
        return found.users

    def add_user(self, name: str, role: str | None, actor: Actor) -> User:
        body = {"name": name, "role": role}
        found: User = self._ask(User, "POST", "/v1/users", json=body)
        return found

    def remove_user(self, name: str, actor: Actor) -> None:
        self._ask(OkResponse, "POST", f"/v1/users/{quote(name, safe='')}/remove")

    def grants(self, of: str | None = None) -> list[Grant]:
        found: GrantList = self._ask(GrantList, "GET", "/v1/grants", params=_user(of))
        return found.grants

    def add_grant(self, name: str, may: str, on: str, actor: Actor) -> Grant:
        found: Grant = self._ask(Grant, "POST", "/v1/grants", json=_grant_body(name, may, on))
        return found

    def remove_grant(self, name: str, may: str, on: str, actor: Actor) -> None:
        self._ask(OkResponse, "POST", "/v1/grants/remove", json=_grant_body(name, may, on))

    def tokens(self, of: str | None = None) -> list[Token]:
        found: TokenList = self._ask(TokenList, "GET", "/v1/tokens", params=_user(of))
        return found.tokens

    def create_token(self, request: TokenRequest, actor: Actor) -> NewToken:
        body = msgspec.to_builtins(request)
        found: NewToken = self._ask(NewToken, "POST", "/v1/tokens", json=body)
        return found

    def revoke_token(self, id: str, actor: Actor) -> Token:
        path = f"/v1/tokens/{quote(id, safe='')}/revoke"
        found: Token = self._ask(Token, "POST", path)
        return found

    def audit_log(self, filter: AuditLogFilter = NEWEST) -> AuditLog:
        params = msgspec.to_builtins(filter)
        found: AuditLog = self._ask(AuditLog, "GET", "/v1/audit-log", params=params)
        return found

    def verify_audit_log(self) -> AuditLogVerification:
        found: AuditLogVerification = self._ask(AuditLogVerification, "GET", "/v1/audit-log/verify")
        return found


def _user(of: str | None) -> dict[str, str]:
    return {"user": of} if of else {}


def _grant_body(name: str, may: str, on: str) -> dict[str, str]:
    return {"user": name, "may": may, "on": on}
