"""Users for tests, each with a token."""

from __future__ import annotations

from pathlib import Path

from headrace.access.access import Access
from headrace.access.audit_log import Actor
from headrace.access.token import TokenRequest

TEST = Actor("test")


def open_access(folder: Path, job: str = "shop") -> tuple[Access, str]:
    """The users of a project, and the token of one who may do everything."""
    access = Access(folder / "access.db", job)
    return access, token_of(access, "ann", "admin")


def token_of(access: Access, name: str, *roles: str, on: str = "*") -> str:
    """The token of a new user who has these roles or operations on an object."""
    access.add_user(name, None, TEST)
    for role in roles:
        access.add_grant(name, role, on, TEST)
    return access.create_token(TokenRequest(name), TEST).secret


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
