"""Whoever guesses is soon told to wait, and nobody else is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.access.access import Access
from headrace.access.failures import ADDRESSES_MAX, AuthenticationFailures
from headrace.access.policy import AccessPolicy
from headrace.core.errors import Overloaded, Unauthenticated
from headrace.core.time import MINUTE, SECOND
from tests.access.test_access import HeldClock
from tests.access.users import TEST, token_of

HERE, ELSEWHERE = "192.0.2.1", "192.0.2.2"


@pytest.fixture
def clock() -> HeldClock:
    return HeldClock()


@pytest.fixture
def access(tmp_path: Path, clock: HeldClock) -> Iterator[Access]:
    made = Access(tmp_path / "access.db", "shop", clock, AccessPolicy(failures_max=3))
    yield made
    made.close()


def guess(access: Access, many: int = 3, address: str = HERE) -> None:
    for number in range(many):
        with pytest.raises(Unauthenticated):
            access.authenticate_token(f"hr_guess{number}", address)


def test_after_so_many_failures_nothing_is_tried(access: Access, clock: HeldClock) -> None:
    secret = token_of(access, "ada", "viewer")
    guess(access)
    for attempt in (
        lambda: access.authenticate_token(secret, HERE),
        lambda: access.authenticate_session("guess", HERE),
        lambda: access.token_of_code("guess", HERE),
    ):
        with pytest.raises(Overloaded) as refused:
            attempt()
    assert refused.value.message == (
        "this address has failed to authenticate 3 times within a minute"
    )
    assert refused.value.retry_after_s == 60
    assert access.authenticate_token(secret, ELSEWHERE).user == "ada"
    clock.now += MINUTE
    guess(access, 2)
    assert access.authenticate_token(secret, HERE).user == "ada"


def test_sessions_and_codes_count_too(access: Access) -> None:
    for attempt in (access.authenticate_token, access.authenticate_session, access.token_of_code):
        with pytest.raises(Unauthenticated):
            attempt("guess", HERE)
    with pytest.raises(Overloaded):
        access.authenticate_token("guess", HERE)


def test_who_was_known_before_is_not_locked_out(access: Access, clock: HeldClock) -> None:
    secret = token_of(access, "ada", "viewer")
    caller = access.authenticate_token(secret, HERE)
    session = access.open_session(caller.token, TEST)
    access.authenticate_session(session, HERE)
    guess(access)
    clock.now += 10 * SECOND  # longer than a caller is remembered
    assert access.authenticate_token(secret, HERE).user == "ada"
    assert access.authenticate_session(session, HERE).user == "ada"
    access.revoke_token(caller.token, TEST)
    with pytest.raises(Unauthenticated):
        access.authenticate_token(secret, HERE)


def test_what_was_valid_once_is_no_guess(access: Access) -> None:
    secret, other = token_of(access, "ada", "viewer"), token_of(access, "bob", "viewer")
    access.revoke_token(access.authenticate_token(secret, HERE).token, TEST)
    for _ in range(10):  # as a program does that was not told
        with pytest.raises(Unauthenticated):
            access.authenticate_token(secret, HERE)
    assert access.authenticate_token(other, HERE).user == "bob"


def test_it_is_in_the_audit_log_once(access: Access) -> None:
    guess(access)
    for _ in range(5):
        with pytest.raises(Overloaded):
            access.authenticate_token("hr_more", HERE)
    (entry,) = access.audit_log().entries
    assert (entry.user, entry.what, entry.decision) == ("anonymous", "authenticate", "refused")
    assert entry.detail == "3 authentications from 192.0.2.1 failed within a minute"


def test_a_network_of_ipv6_is_one_address(clock: HeldClock) -> None:
    failures = AuthenticationFailures(2, clock)
    failures.record("2001:db8::1")
    failures.record("2001:db8::2")
    with pytest.raises(Overloaded):
        failures.check("2001:db8::ffff")
    failures.check("2001:db8:0:1::1")
    failures.check("::ffff:192.0.2.1")


def test_addresses_take_bounded_memory(clock: HeldClock) -> None:
    failures = AuthenticationFailures(1, clock)
    for number in range(ADDRESSES_MAX + 10):
        failures.record(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert len(failures._counted) == ADDRESSES_MAX
    failures.check("10.0.0.1")
