"""Users, tokens, grants and sessions: what is given, taken back, and when it ends."""

from __future__ import annotations

import sqlite3
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.access.access import Access
from headrace.access.audit_log import DETAIL_MAX, Actor, AuditLogFilter
from headrace.access.authenticator import REMEMBERED_US
from headrace.access.object import NAME_MAX, object_of
from headrace.access.operation import Operation
from headrace.access.policy import AccessPolicy
from headrace.access.run import begin_job, begin_run, end_run, first_token
from headrace.access.token import TokenRequest
from headrace.core.errors import BadRequest, Conflict, NotFound, Unauthenticated
from headrace.core.time import DAY, HOUR, MINUTE
from tests.access.users import TEST, token_of

VIEW = object_of("view", "visitors")


class HeldClock:
    def __init__(self) -> None:
        self.now = 1_800_000_000_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> HeldClock:
    return HeldClock()


@pytest.fixture
def access(tmp_path: Path, clock: HeldClock) -> Iterator[Access]:
    made = Access(tmp_path / "access.db", "shop", clock)
    yield made
    made.close()


def reads(access: Access, secret: str) -> bool:
    return access.authenticate_token(secret).allows(Operation.READ, VIEW)


def test_a_new_user_may_do_nothing_until_it_is_granted(access: Access) -> None:
    secret = token_of(access, "ada")
    assert not reads(access, secret)
    access.add_grant("ada", "viewer", "view:visitors", TEST)
    assert reads(access, secret)
    access.remove_grant("ada", "viewer", "view:visitors", TEST)
    assert not reads(access, secret)
    with pytest.raises(NotFound, match="'ada' has no grant of viewer on view:visitors"):
        access.remove_grant("ada", "viewer", "view:visitors", TEST)


def test_somebody_can_always_manage_users(access: Access) -> None:
    token_of(access, "ada", "admin", "manage")
    token_of(access, "bob", "admin", on="job:shop")
    begin_run(access)  # its user is there while the run lasts, and does not count
    with pytest.raises(Conflict) as refused:
        access.remove_user("ada", TEST)
    assert refused.value.message == "ada is the last user who may manage users"
    assert refused.value.hint == "grant it to another user first: `headrace grant add NAME admin`."
    access.remove_grant("ada", "manage", "*", TEST)  # she is an admin still
    with pytest.raises(Conflict, match="ada is the last user who may manage users"):
        access.remove_grant("ada", "admin", "*", TEST)
    assert [grant.may for grant in access.grants("ada")] == ["admin"]
    access.remove_user("bob", TEST)
    access.add_user("eve", "admin", TEST)
    access.remove_grant("ada", "admin", "*", TEST)
    with pytest.raises(Conflict, match="eve is the last"):
        access.remove_user("eve", TEST)
    access.remove_user("ada", TEST)
    removed = [entry.object for entry in access.audit_log().entries if entry.what == "remove_user"]
    assert removed == ["user:ada", "user:bob"]


def test_a_revoked_token_is_refused_at_once(access: Access) -> None:
    secret = token_of(access, "ada", "viewer")
    caller = access.authenticate_token(secret)
    assert access.revoke_token(caller.token, TEST).revoked_at is not None
    with pytest.raises(Unauthenticated):
        access.authenticate_token(secret)


def test_a_token_ends_by_itself(access: Access, clock: HeldClock) -> None:
    access.add_user("ada", "viewer", TEST)
    secret = access.create_token(TokenRequest("ada", life="1 day"), TEST).secret
    clock.now += DAY - 1
    assert reads(access, secret)
    clock.now += 1
    with pytest.raises(Unauthenticated, match="not valid, or has expired"):
        access.authenticate_token(secret)


def test_a_session_ends_when_it_is_not_used(access: Access, clock: HeldClock) -> None:
    token = access.authenticate_token(token_of(access, "ada", "viewer")).token
    used, left = access.open_session(token, TEST), access.open_session(token, TEST)
    for _ in range(5):
        clock.now += 50 * MINUTE
        assert access.authenticate_session(used).user == "ada"
    with pytest.raises(Unauthenticated, match="not valid, or has expired"):
        access.authenticate_session(left)
    clock.now += HOUR
    with pytest.raises(Unauthenticated):
        access.authenticate_session(used)


class FullDisk:
    """The connection that writes, of which no change can be committed."""

    def __init__(self, writer: sqlite3.Connection) -> None:
        self.writer = writer

    def execute(self, sql: str, *given: Any) -> Any:
        if sql == "COMMIT":
            raise sqlite3.OperationalError("database or disk is full")
        return self.writer.execute(sql, *given)

    @property
    def in_transaction(self) -> bool:
        return self.writer.in_transaction


def test_a_session_is_valid_while_the_disk_is_full(
    access: Access, clock: HeldClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = access.open_session(access.authenticate_token(token_of(access, "ada")).token, TEST)
    with monkeypatch.context() as patch:
        patch.setattr(access._file, "_writer", FullDisk(access._file._writer))
        for _ in range(2):
            clock.now += AccessPolicy().session_idle_us // 10
            assert access.authenticate_session(session).user == "ada"
    access.end_session(session, TEST)  # nothing was left open
    with pytest.raises(Unauthenticated):
        access.authenticate_session(session)


def test_a_session_that_is_used_ends_with_its_life(access: Access, clock: HeldClock) -> None:
    token = access.authenticate_token(token_of(access, "ada", "viewer")).token
    secret = access.open_session(token, TEST)
    for _ in range(12 * 2 - 1):
        clock.now += 30 * MINUTE
        access.authenticate_session(secret)
    clock.now += 30 * MINUTE
    with pytest.raises(Unauthenticated):
        access.authenticate_session(secret)


def test_the_life_of_a_token_has_a_bound(tmp_path: Path, clock: HeldClock) -> None:
    strict = Access(tmp_path / "access.db", "shop", clock, AccessPolicy(token_life_max_us=30 * DAY))
    try:
        first = first_token(strict)
        assert first is not None, "its life is within the bound"
        run = begin_run(strict)
        with pytest.raises(BadRequest) as refused:
            strict.create_token(TokenRequest("admin", life="31 days"), TEST)
        assert refused.value.message == "a token is valid for at most 30 days, not 31 days"
        assert strict.create_token(TokenRequest("admin", life="30 days"), TEST).secret
        clock.now += 30 * DAY
        with pytest.raises(Unauthenticated):
            strict.authenticate_token(first)
        assert strict.authenticate_token(run).user == "local", "it ends with the run"
    finally:
        strict.close()


def test_a_token_lives_a_year_at_most_where_nothing_is_said(access: Access) -> None:
    access.add_user("ada", None, TEST)
    with pytest.raises(BadRequest, match="a token is valid for at most 365 days, not 366 days"):
        access.create_token(TokenRequest("ada", life="366 days"), TEST)


def test_a_user_who_is_removed_takes_everything_along(access: Access) -> None:
    secret = token_of(access, "ada", "viewer")
    session = access.open_session(access.authenticate_token(secret).token, TEST)
    access.remove_user("ada", TEST)
    for who, known in ((access.authenticate_token, secret), (access.authenticate_session, session)):
        with pytest.raises(Unauthenticated):
            who(known)
    assert (access.tokens(), access.grants(), access.users()) == ([], [], [])
    access.add_user("ada", None, TEST)
    assert access.grants("ada") == [], "another of the same name begins with nothing"


def test_a_session_ends_with_its_time_and_with_its_token(access: Access, clock: HeldClock) -> None:
    secret = token_of(access, "ada", "viewer")
    id = access.authenticate_token(secret).token
    first, second = access.open_session(id, TEST), access.open_session(id, TEST)
    assert access.authenticate_session(first) == access.authenticate_token(secret)
    access.end_session(first, TEST)
    with pytest.raises(Unauthenticated):
        access.authenticate_session(first)
    clock.now += 12 * HOUR
    with pytest.raises(Unauthenticated):
        access.authenticate_session(second)
    third = access.open_session(id, TEST)
    access.authenticate_session(third)
    access.revoke_token(id, TEST)
    with pytest.raises(Unauthenticated):
        access.authenticate_session(third)


def test_a_token_is_no_session_and_a_session_no_token(access: Access) -> None:
    secret = token_of(access, "ada", "viewer")
    session = access.open_session(access.authenticate_token(secret).token, TEST)
    with pytest.raises(Unauthenticated):
        access.authenticate_token(session)
    with pytest.raises(Unauthenticated):
        access.authenticate_session(secret + "x")


def test_a_code_opens_once_and_soon(access: Access, clock: HeldClock) -> None:
    secret = token_of(access, "ada", "viewer")
    code, late = access.code(secret), access.code(secret)
    assert access.token_of_code(code).user == "ada"
    with pytest.raises(Unauthenticated, match="already used, or has expired"):
        access.token_of_code(code)
    clock.now += 10 * MINUTE
    with pytest.raises(Unauthenticated):
        access.token_of_code(late)


def test_nothing_in_the_file_is_a_secret(access: Access, tmp_path: Path) -> None:
    secret = token_of(access, "ada", "viewer")
    session = access.open_session(access.authenticate_token(secret).token, TEST)
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"ada" in held
    for each in (secret, secret.removeprefix("hr_"), session):
        assert each.encode() not in held
    assert len(secret) == len("hr_") + 43, "32 bytes of chance"


def test_the_files_are_for_their_owner_alone(access: Access, tmp_path: Path) -> None:
    token_of(access, "ada")
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_another_process_is_noticed_after_a_few_seconds(
    access: Access, tmp_path: Path, clock: HeldClock
) -> None:
    secret = token_of(access, "ada", "viewer")
    assert reads(access, secret)
    other = Access(tmp_path / "access.db", "shop", clock)
    other.remove_user("ada", TEST)
    other.close()
    assert reads(access, secret), "it is remembered"
    clock.now += REMEMBERED_US
    with pytest.raises(Unauthenticated):
        access.authenticate_token(secret)


def test_what_was_read_before_a_change_is_not_remembered_after_it(
    access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = token_of(access, "ada", "viewer")
    remember = access._authenticator._remember

    def slowly(*rest: object) -> None:
        changing = threading.Thread(target=access.remove_grant, args=("ada", "viewer", "*", TEST))
        changing.start()
        changing.join()
        remember(*rest)  # type: ignore[arg-type]

    monkeypatch.setattr(access._authenticator, "_remember", slowly)
    access.authenticate_token(secret)
    monkeypatch.undo()
    assert not reads(access, secret)


@pytest.mark.parametrize("name", ["", "Ada", "a b", "ada:x", "-ada", "a" * 65, "ä"])
def test_a_name_is_plain(access: Access, name: str) -> None:
    with pytest.raises(BadRequest, match="is not a valid user name"):
        access.add_user(name, None, TEST)


def test_wrong_words_change_nothing(access: Access) -> None:
    access.add_user("ada", None, TEST)
    with pytest.raises(BadRequest):
        access.add_user("ada", None, TEST)
    with pytest.raises(BadRequest):
        access.add_user("bob", "root", TEST)
    with pytest.raises(NotFound, match="there is no user 'bob'"):
        access.add_grant("bob", "viewer", "*", TEST)
    for asked in (
        TokenRequest("ada", may=["root"]),
        TokenRequest("ada", on=["clicks"]),
        TokenRequest("ada", life="a while"),
        TokenRequest("ada", life="0s"),
    ):
        with pytest.raises(BadRequest):
            access.create_token(asked, TEST)
    assert [user.name for user in access.users()] == ["ada"]
    assert [entry.what for entry in access.audit_log().entries] == ["add_user"]


# The audit log


def test_each_change_is_in_the_log_with_who_made_it(access: Access) -> None:
    by = Actor("ann", "t1", "r1")
    access.add_user("ada", "viewer", by)
    token = access.create_token(TokenRequest("ada"), by).token
    access.revoke_token(token.id, by)
    access.remove_user("ada", by)
    entries = access.audit_log().entries
    assert [(entry.what, entry.object) for entry in reversed(entries)] == [
        ("add_user", "user:ada"), ("add_grant", "user:ada"), ("create_token", f"token:{token.id}"),
        ("revoke_token", f"token:{token.id}"), ("remove_user", "user:ada"),
    ]  # fmt: skip
    assert {(e.user, e.token, e.request, e.decision) for e in entries} == {
        ("ann", "t1", "r1", "allowed")
    }


def test_entries_of_the_log_are_found(access: Access) -> None:
    access.add_user("ada", "viewer", Actor("ann", "t1"))
    access.add_user("bob", None, Actor("Bea", "t2"))
    access.log(Actor("bob", "t3"), "read_view", "view:sales", "refused", "bob may not read 'sales'")

    def found(**wanted: Any) -> list[str]:
        return [f"{e.user} {e.what}" for e in access.audit_log(AuditLogFilter(**wanted)).entries]

    refused, later, granted, first = (
        "bob read_view", "Bea add_user", "ann add_grant", "ann add_user",
    )  # fmt: skip
    assert found() == [refused, later, granted, first]
    assert found(limit=2) == [refused, later]
    assert found(limit=2, before=access.audit_log().entries[1].number) == [granted, first]
    assert found(user="ann") == [granted, first]
    assert found(decision="refused") == [refused]
    assert found(what="add_user") == [later, first]
    assert found(what="add_user", find="BEA user:bob") == [later]
    assert found(find="bob") == [refused, later]
    assert found(find="bob nothing") == found(find="b%b") == []


def test_a_page_of_the_log_says_how_many_entries_match(access: Access) -> None:
    for number in range(5):
        access.add_user(f"u{number}", None, Actor("ann" if number else "Bea"))

    def total(**wanted: Any) -> int:
        return access.audit_log(AuditLogFilter(**wanted)).total

    assert [total(limit=2), total(limit=2, before=3), total(user="ann", before=3)] == [5, 5, 4]
    assert [total(find="u3"), total(after=2), total(user="eve")] == [1, 3, 0]


def test_what_a_refusal_tells_is_cut(access: Access) -> None:
    access.log(Actor("bob"), "read_view", "view:" + "x" * 9_000, "refused", "y" * 9_000)
    (entry,) = access.audit_log().entries
    assert (len(entry.object), len(entry.detail)) == (NAME_MAX, DETAIL_MAX)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE audit_log SET user = 'bob'",
        "DELETE FROM audit_log",
        "INSERT OR REPLACE INTO audit_log SELECT number, 0, 'bob', '', '', '', '', '', '', '' "
        "FROM audit_log",
    ],
)
def test_the_log_is_only_appended_to(access: Access, sql: str) -> None:
    access.add_user("ada", None, TEST)
    with (
        pytest.raises(sqlite3.IntegrityError, match="the audit log is append-only"),
        access._file.write() as db,
    ):
        db.execute(sql)
    assert [entry.user for entry in access.audit_log().entries] == ["test"]


# What a run needs


def test_the_first_start_makes_an_admin_and_no_other_does(access: Access) -> None:
    begin_run(access)
    first = first_token(access)
    assert first is not None
    assert access.authenticate_token(first).user == "admin"
    assert first_token(access) is None


def test_the_token_of_a_run_lasts_as_long_as_the_run(access: Access) -> None:
    killed = begin_run(access)
    again = begin_run(access)
    with pytest.raises(Unauthenticated):
        access.authenticate_token(killed)
    assert access.authenticate_token(again).user == "local"
    end_run(access)
    with pytest.raises(Unauthenticated):
        access.authenticate_token(again)
    end_run(access)
    assert access.users() == []


def test_a_job_has_no_users_but_that_of_its_run(access: Access) -> None:
    token_of(access, "ada", "admin")
    token_of(access, "bob")
    begin_job(access)
    assert [user.name for user in access.users()] == ["local"]
    removed = [entry.object for entry in access.audit_log().entries if entry.what == "remove_user"]
    assert removed == ["user:bob", "user:ada"]
