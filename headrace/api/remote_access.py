"""The users, tokens and grants of a project that runs in another process, asked over HTTP.

The other side knows by the token who asks. tests/api/test_users.py sends each method there and
back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import msgspec

from headrace.access.audit_log import NEWEST, By, Entry, Verified, Wanted
from headrace.access.token import NewToken, Token, TokenAsked
from headrace.access.user import Grant, User
from headrace.api.access_shapes import AuditLog, Done, Grants, Tokens, Users


class RemoteAccess:
    """`ask` sends a request and decodes the answer."""

    def __init__(self, ask: Callable[..., Any]) -> None:
        self._ask = ask

    def users(self) -> list[User]:
        found: Users = self._ask(Users, "GET", "/v1/users")
        return found.users

    def add_user(self, name: str, role: str | None, by: By) -> User:
        said = {"name": name, "role": role}
        found: User = self._ask(User, "POST", "/v1/users", json=said)
        return found

    def remove_user(self, name: str, by: By) -> None:
        self._ask(Done, "POST", f"/v1/users/{quote(name, safe='')}/remove")

    def grants(self, of: str | None = None) -> list[Grant]:
        found: Grants = self._ask(Grants, "GET", "/v1/grants", params=_user(of))
        return found.grants

    def grant(self, name: str, may: str, on: str, by: By) -> Grant:
        found: Grant = self._ask(Grant, "POST", "/v1/grants", json=_said(name, may, on))
        return found

    def take_back(self, name: str, may: str, on: str, by: By) -> None:
        self._ask(Done, "POST", "/v1/grants/remove", json=_said(name, may, on))

    def tokens(self, of: str | None = None) -> list[Token]:
        found: Tokens = self._ask(Tokens, "GET", "/v1/tokens", params=_user(of))
        return found.tokens

    def create_token(self, asked: TokenAsked, by: By) -> NewToken:
        said = msgspec.to_builtins(asked)
        found: NewToken = self._ask(NewToken, "POST", "/v1/tokens", json=said)
        return found

    def revoke_token(self, id: str, by: By) -> Token:
        path = f"/v1/tokens/{quote(id, safe='')}/revoke"
        found: Token = self._ask(Token, "POST", path)
        return found

    def audit_log(self, wanted: Wanted = NEWEST) -> list[Entry]:
        params = msgspec.to_builtins(wanted)
        found: AuditLog = self._ask(AuditLog, "GET", "/v1/audit-log", params=params)
        return found.entries

    def verify_audit_log(self) -> Verified:
        found: Verified = self._ask(Verified, "GET", "/v1/audit-log/verify")
        return found


def _user(of: str | None) -> dict[str, str]:
    return {"user": of} if of else {}


def _said(name: str, may: str, on: str) -> dict[str, str]:
    return {"user": name, "may": may, "on": on}
