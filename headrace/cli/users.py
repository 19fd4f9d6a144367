"""`headrace user`, `token`, `grant` and `audit-log`, on a running project and on a stopped one, or
on a server of jobs that runs.

Changes of a stopped project are made on its file, and the audit log names the machine's user.
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

from headrace.access.audit_log import By, Entry, Wanted
from headrace.access.token import Token, TokenAsked
from headrace.api.accessbook import AccessBook
from headrace.cli.folder import loaded
from headrace.cli.report import Report, bad, dim, good, print_json, whole
from headrace.client.table import table
from headrace.client.words import second
from headrace.core.user import os_user
from headrace.define.folder import found_folder

_FOLLOW_S = 1.0


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose users: a server's, if one is named, else those of the project in a folder."""

    folder: Path
    server: str | None = None
    home: Path | None = None


def of(project: Path | None, server: str | None, home: Path | None) -> Whose:
    return Whose(found_folder(project), server, home)


@contextmanager
def _access(whose: Whose) -> Iterator[AccessBook]:
    if whose.server or whose.home:
        from headrace.server.client import found_server

        with found_server(whose.server, whose.home).open() as remote:
            yield remote.access
        return
    from headrace.run.connect import connect_access

    with connect_access(loaded(whose.folder)) as access:
        yield access


def _by() -> By:
    """Who changes a file; a running project knows by the token who asks."""
    return By(os_user())


def add_user(whose: Whose, name: str, role: str | None) -> Report:
    with _access(whose) as access:
        made = access.add_user(name, role, _by())
    said = f"{role} on everything" if role else "nothing yet; headrace grant add says what"
    return Report(made, [good(f"user {made.name} may do: {said}")])


def list_users(whose: Whose) -> Report:
    with _access(whose) as access:
        users, grants = access.users(), access.grants()
    may = defaultdict(list)
    for grant in grants:
        may[grant.user].append(f"{grant.may} on {grant.on}")
    rows = [
        [user.name, ", ".join(may[user.name]) or "nothing", f"{second(user.made_at)} UTC"]
        for user in users
    ]
    shown = table("user", "may", "since", rows=rows) if rows else Text("no users")
    return Report({"users": users, "grants": grants}, [shown])


def remove_user(whose: Whose, name: str) -> Report:
    with _access(whose) as access:
        access.remove_user(name, _by())
    return Report({"ok": True}, [good(f"user {name} is removed")])


def create_token(
    whose: Whose, user: str | None, name: str, may: list[str], on: list[str], life: str
) -> Report:
    with _access(whose) as access:
        made = access.create_token(TokenAsked(user, name, may, on, life), _by())
    until = f"valid until {second(made.token.expires_at)} UTC; it is not shown again"
    return Report(made, [whole(made.secret), dim(f"token {made.token.id}, {until}")])


def list_tokens(whose: Whose, user: str | None) -> Report:
    with _access(whose) as access:
        found = access.tokens(user)
    rows = [_token_row(token) for token in found]
    heads = ("token", "user", "name", "carries", "made", "valid until")
    return Report({"tokens": found}, [table(*heads, rows=rows) if rows else Text("no tokens")])


def _token_row(token: Token) -> list[str | Text]:
    carries = f"{', '.join(token.may) or 'all'} on {', '.join(token.on) or 'all'}"
    until = bad("revoked") if token.revoked_at else Text(f"{second(token.expires_at)} UTC")
    made = f"{second(token.made_at)} UTC"
    return [token.id, token.user, token.name, carries, made, until]


def revoke_token(whose: Whose, id: str) -> Report:
    with _access(whose) as access:
        gone = access.revoke_token(id, _by())
    return Report(gone, [good(f"token {gone.id} of {gone.user} is revoked")])


def add_grant(whose: Whose, user: str, may: str, on: str) -> Report:
    with _access(whose) as access:
        made = access.grant(user, may, on, _by())
    return Report(made, [good(f"{made.user} has {made.may} on {made.on}")])


def list_grants(whose: Whose, user: str | None) -> Report:
    with _access(whose) as access:
        found = access.grants(user)
    rows = [[g.user, g.may, g.on, f"{second(g.made_at)} UTC", g.made_by] for g in found]
    shown = table("user", "may", "on", "since", "by", rows=rows) if rows else Text("no grants")
    return Report({"grants": found}, [shown])


def remove_grant(whose: Whose, user: str, may: str, on: str) -> Report:
    with _access(whose) as access:
        access.take_back(user, may, on, _by())
    return Report({"ok": True}, [good(f"{user} has {may} on {on} no more")])


def audit_log(whose: Whose, wanted: Wanted) -> Report:
    with _access(whose) as access:
        found = access.audit_log(wanted)
    heads = ("number", "at", "user", "token", "what", "object", "decision", "detail")
    rows = [_entry_row(entry) for entry in found]
    return Report({"entries": found}, [table(*heads, rows=rows) if rows else Text("no entries")])


def _wait() -> bool:
    time.sleep(_FOLLOW_S)
    return False


def follow_audit_log(whose: Whose, wanted: Wanted, enough: Callable[[], bool] = _wait) -> int:
    """Print entries as they come, one JSON line each, until it is enough."""
    with _access(whose) as access:
        while True:
            found = access.audit_log(wanted)
            for entry in found:
                print_json(entry)
                wanted = replace(wanted, after=entry.number)
            if not found and enough():
                return 0


def verify_audit_log(whose: Whose) -> Report:
    with _access(whose) as access:
        found = access.verify_audit_log()
    if found.broken_at is None:
        line = f"all {found.entries:,} entries are as they were appended"
        return Report(found, [good(line), dim(f"the newest is {found.head or 'none'}")])
    line = f"entry {found.broken_at:,} is missing or is not what was appended"
    return Report(found, [bad(line)], 1)


def _entry_row(entry: Entry) -> list[str | Text]:
    decision = Text(entry.decision) if entry.decision == "allowed" else bad(entry.decision)
    at = f"{second(entry.at)} UTC"
    first, last = (str(entry.number), at, entry.user, entry.token), (decision, entry.detail)
    return [*first, entry.what, entry.object, *last]
