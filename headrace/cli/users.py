"""`headrace user`, `token`, `grant` and `audit-log`, of a running or stopped project, or of a
running server of jobs.

Changes of a stopped project are made in its file, and the audit log has the user of the machine.
tests/cli/test_users.py reads the pages.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace
from rich.text import Text

from headrace.access.audit_log import Actor, AuditLogEntry, AuditLogFilter
from headrace.access.token import Token, TokenRequest
from headrace.api.access_service import AccessService
from headrace.cli.folder import load
from headrace.cli.report import Report, bad, dim, good, print_json, unwrapped
from headrace.client.formats import timestamp_to_second
from headrace.client.table import table
from headrace.core.user import os_user
from headrace.define.folder import find_project_folder

_FOLLOW_S = 1.0


@dataclass(frozen=True, slots=True)
class AccessTarget:
    """The server whose users a command changes, else the project in a folder."""

    folder: Path
    server: str | None = None
    home: Path | None = None


def access_target(project: Path | None, server: str | None, home: Path | None) -> AccessTarget:
    return AccessTarget(find_project_folder(project), server, home)


@contextmanager
def _access(target: AccessTarget) -> Iterator[AccessService]:
    if target.server or target.home:
        from headrace.server.client import find_server

        with find_server(target.server, target.home).open() as remote:
            yield remote.access
        return
    from headrace.run.connect import connect_access

    with connect_access(load(target.folder)) as access:
        yield access


def _actor() -> Actor:
    """The actor of a change in a file; a running project takes it from the token."""
    return Actor(os_user())


def add_user(target: AccessTarget, name: str, role: str | None) -> Report:
    with _access(target) as access:
        made = access.add_user(name, role, _actor())
    granted = f"{role} on everything" if role else "none; add some with `headrace grant add`"
    return Report(made, [good(f"user {made.name} added, with grants: {granted}")])


def list_users(target: AccessTarget) -> Report:
    with _access(target) as access:
        users, grants = access.users(), access.grants()
    may = defaultdict(list)
    for grant in grants:
        may[grant.user].append(f"{grant.may} on {grant.on}")
    rows = [
        [user.name, ", ".join(may[user.name]) or "none", f"{timestamp_to_second(user.made_at)} UTC"]
        for user in users
    ]
    shown = table("user", "grants", "since", rows=rows) if rows else Text("no users")
    return Report({"users": users, "grants": grants}, [shown])


def remove_user(target: AccessTarget, name: str) -> Report:
    with _access(target) as access:
        access.remove_user(name, _actor())
    return Report({"ok": True}, [good(f"user {name} removed")])


def create_token(
    target: AccessTarget, user: str | None, name: str, may: list[str], on: list[str], life: str
) -> Report:
    with _access(target) as access:
        made = access.create_token(TokenRequest(user, name, may, on, life), _actor())
    until = f"valid until {timestamp_to_second(made.token.expires_at)} UTC; it is not shown again"
    return Report(made, [unwrapped(made.secret), dim(f"token {made.token.id}, {until}")])


def list_tokens(target: AccessTarget, user: str | None) -> Report:
    with _access(target) as access:
        found = access.tokens(user)
    rows = [_token_row(token) for token in found]
    heads = ("token", "user", "name", "scope", "created", "valid until")
    return Report({"tokens": found}, [table(*heads, rows=rows) if rows else Text("no tokens")])


def _token_row(token: Token) -> list[str | Text]:
    scope = f"{', '.join(token.may) or 'all'} on {', '.join(token.on) or 'all'}"
    until = (
        bad("revoked") if token.revoked_at else Text(f"{timestamp_to_second(token.expires_at)} UTC")
    )
    made = f"{timestamp_to_second(token.made_at)} UTC"
    return [token.id, token.user, token.name, scope, made, until]


def revoke_token(target: AccessTarget, id: str) -> Report:
    with _access(target) as access:
        gone = access.revoke_token(id, _actor())
    return Report(gone, [good(f"token {gone.id} of {gone.user} revoked")])


def add_grant(target: AccessTarget, user: str, may: str, on: str) -> Report:
    with _access(target) as access:
        made = access.add_grant(user, may, on, _actor())
    return Report(made, [good(f"{made.user} has {made.may} on {made.on}")])


def list_grants(target: AccessTarget, user: str | None) -> Report:
    with _access(target) as access:
        found = access.grants(user)
    rows = [
        [g.user, g.may, g.on, f"{timestamp_to_second(g.made_at)} UTC", g.made_by] for g in found
    ]
    shown = table("user", "may", "on", "since", "by", rows=rows) if rows else Text("no grants")
    return Report({"grants": found}, [shown])


def remove_grant(target: AccessTarget, user: str, may: str, on: str) -> Report:
    with _access(target) as access:
        access.remove_grant(user, may, on, _actor())
    return Report({"ok": True}, [good(f"removed from {user}: {may} on {on}")])


def audit_log(target: AccessTarget, filter: AuditLogFilter) -> Report:
    with _access(target) as access:
        found = access.audit_log(filter)
    heads = ("number", "at", "user", "token", "what", "object", "decision", "detail")
    if not found.entries:
        return Report(found, [Text("no entries")])
    rows = [_entry_row(entry) for entry in found.entries]
    cut = found.total > len(rows)
    more = [dim(f"{len(rows):,} of {found.total:,}")] if cut else []
    return Report(found, [table(*heads, rows=rows), *more])


def _wait() -> bool:
    time.sleep(_FOLLOW_S)
    return False


def follow_audit_log(
    target: AccessTarget, filter: AuditLogFilter, enough: Callable[[], bool] = _wait
) -> int:
    """Print entries as they are appended, one JSON line each, until `enough` returns True."""
    with _access(target) as access:
        while True:
            found = access.audit_log(filter).entries
            for entry in found:
                print_json(entry)
                filter = replace(filter, after=entry.number)
            if not found and enough():
                return 0


def verify_audit_log(target: AccessTarget) -> Report:
    with _access(target) as access:
        found = access.verify_audit_log()
    if found.broken_at is None:
        line = f"all {found.entries:,} entries are unchanged"
        return Report(found, [good(line), dim(f"the newest is {found.head or 'none'}")])
    line = f"entry {found.broken_at:,} is missing or was changed"
    return Report(found, [bad(line)], 1)


def _entry_row(entry: AuditLogEntry) -> list[str | Text]:
    decision = Text(entry.decision) if entry.decision == "allowed" else bad(entry.decision)
    at = f"{timestamp_to_second(entry.at)} UTC"
    first, last = (str(entry.number), at, entry.user, entry.token), (decision, entry.detail)
    return [*first, entry.what, entry.object, *last]
