"""Users, tokens and grants from the command line: on the file of a stopped project, and of one that
runs.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from headrace.access.access import Access
from headrace.access.audit_log import AuditLogFilter
from headrace.access.run import begin_run
from headrace.api.server import HttpServer
from headrace.cli.users import AccessTarget, follow_audit_log
from headrace.core.user import os_user
from headrace.define.layout import Layout
from headrace.define.project import load_project
from headrace.define.settings import HttpSettings
from headrace.run.lock import RunLock
from headrace.run.log_file import log_to_stderr
from tests.access.users import open_access

from .conftest import document

Call = Callable[..., Result]


@pytest.fixture
def running(shop: Path) -> Iterator[Access]:
    """The shop as it runs, as far as users are concerned."""
    log_to_stderr()
    layout = Layout.of(load_project(shop))
    access, lock = Access(layout.access, "shop"), RunLock(layout)
    service: Any = object()
    server = HttpServer(service, HttpSettings(port=0), access)
    lock.acquire()
    server.start()
    lock.announce(server.url, begin_run(access))
    yield access
    server.stop()
    access.close()
    lock.release()


def _walk(call: Call) -> list[Any]:
    """Everything once; what the audit log has of it."""
    assert call("user", "add", "ada").stdout == (
        "user ada added, with grants: none; add some with `headrace grant add`\n"
    )
    assert call("user", "add", "bob", "--role", "viewer").exit_code == 0
    assert call("grant", "add", "ada", "send", "stream:clicks").stdout == (
        "ada has send on stream:clicks\n"
    )
    made = document(call("token", "create", "--user", "ada", "--for", "1d", "--json"))
    assert made["secret"].startswith("hr_")
    listed = call("token", "list", "--user", "ada").stdout.splitlines()
    assert listed[0].split() == ["token", "user", "name", "scope", "created", "valid", "until"]
    assert made["secret"] not in call("token", "list", "--json").stdout
    assert "send on stream:clicks" in call("user", "list").stdout
    grants = document(call("grant", "list", "--user", "bob", "--json"))["grants"]
    assert [(grant["may"], grant["on"]) for grant in grants] == [("viewer", "*")]
    id = made["token"]["id"]
    assert call("token", "revoke", id).stdout == f"token {id} of ada revoked\n"
    assert call("grant", "remove", "ada", "send", "stream:clicks").exit_code == 0
    assert call("user", "remove", "ada").stdout == "user ada removed\n"
    assert call("user", "remove", "ada").exit_code == 3
    return list(document(call("audit-log", "--limit", "4", "--json"))["entries"])


def test_a_stopped_project_is_changed_by_its_file(shop: Path, call: Call) -> None:
    entries = _walk(call)
    assert [entry["what"] for entry in reversed(entries)] == [
        "create_token", "revoke_token", "remove_grant", "remove_user",
    ]  # fmt: skip
    assert {(entry["user"], entry["token"]) for entry in entries} == {(os_user(), "")}


def test_a_running_project_is_asked_with_the_token_beside_its_address(
    running: Access, call: Call
) -> None:
    entries = _walk(call)
    assert {entry["user"] for entry in entries} == {"local"}
    assert all(entry["token"] and entry["request"] for entry in entries)


def test_another_token_goes_before_it(
    running: Access, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("user", "add", "bob", "--role", "viewer")
    secret = document(call("token", "create", "--user", "bob", "--json"))["secret"]
    monkeypatch.setenv("HEADRACE_TOKEN", secret)
    refused = call("user", "list")
    assert (refused.exit_code, refused.stderr.splitlines()[0]) == (
        1, "Forbidden: bob may not manage everything",
    )  # fmt: skip
    assert document(call("token", "list", "--json"))["tokens"][0]["user"] == "bob"
    monkeypatch.setenv("HEADRACE_TOKEN", "hr_guessed")
    assert call("user", "list").stderr.startswith("Unauthenticated: this token or session is not")
    assert call("--token", secret, "token", "list").exit_code == 0


def test_the_audit_log_is_shown(shop: Path, call: Call) -> None:
    assert call("audit-log").stdout == "no entries\n"
    call("user", "add", "ada")
    lines = call("audit-log").stdout.splitlines()
    assert lines[0].split() == [
        "number", "at", "user", "token", "what", "object", "decision", "detail",
    ]  # fmt: skip
    assert lines[1].split()[-3:] == ["add_user", "user:ada", "allowed"]
    call("user", "add", "bob")
    for asked, shown in (
        (("--what", "add_user"), ["user:bob", "user:ada"]),
        (("--find", "BOB"), ["user:bob"]),
        (("--before", "2"), ["user:ada"]),
        (("--decision", "refused"), []),
    ):
        entries = document(call("audit-log", *asked, "--json"))["entries"]
        assert [entry["object"] for entry in entries] == shown, asked


def test_the_audit_log_is_verified(shop: Path, call: Call) -> None:
    call("user", "add", "ada")
    head = document(call("audit-log", "--json"))["entries"][0]["chain"]
    said = call("audit-log", "--verify")
    assert (said.exit_code, said.stdout) == (
        0, f"all 1 entries are unchanged\nthe newest is {head}\n",
    )  # fmt: skip
    with sqlite3.connect(Layout.of(load_project(shop)).access) as db:
        db.execute("DROP TRIGGER audit_log_stays")
        db.execute("UPDATE audit_log SET user = 'eve'")
    db.close()
    broken = call("audit-log", "--verify")
    assert (broken.exit_code, broken.stdout) == (
        1, "entry 1 is missing or was changed\n",
    )  # fmt: skip


def test_the_audit_log_is_followed_elsewhere(
    shop: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    call("user", "add", "ada")
    turns = iter((False, True))

    def enough() -> bool:
        call("user", "add", "bob")
        return next(turns)

    assert follow_audit_log(AccessTarget(shop), AuditLogFilter(after=0), enough) == 0
    entries = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [entry["object"] for entry in entries] == ["user:ada", "user:bob"]
    assert entries[0]["chain"] != entries[1]["chain"]
    found = document(call("audit-log", "--after", "1", "--json"))["entries"]
    assert [entry["number"] for entry in found] == [2]


def test_a_server_of_jobs_is_asked_for_its_users(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    access, token = open_access(tmp_path, "")
    service: Any = object()
    server, lock = HttpServer(service, HttpSettings(port=0), access), RunLock(Layout(tmp_path))
    lock.acquire()
    server.start()
    lock.announce(server.url, begin_run(access))
    try:
        assert call("user", "add", "eve", "--home", str(tmp_path)).exit_code == 0
        monkeypatch.setenv("HEADRACE_TOKEN", token)
        assert call("grant", "add", "eve", "submit", "--server", server.url).exit_code == 0
        assert [(grant.may, grant.on) for grant in access.grants("eve")] == [("submit", "*")]
    finally:
        server.stop()
        access.close()
        lock.release()
