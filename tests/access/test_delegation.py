"""A delegated token is valid for one job and one request, for a short time; it cannot be forged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.access.caller import Caller, Permission
from headrace.access.delegation import (
    KEY_BYTES,
    LIFE_US,
    delegated_token,
    read_delegated_token,
    request_line,
)
from headrace.access.object import EVERYTHING, object_of
from headrace.access.operation import Operation
from headrace.core.errors import Unauthenticated

KEY, OTHER = b"k" * KEY_BYTES, b"o" * KEY_BYTES
ASKED = request_line("GET", b"/v1/views/visitors?url=%2Fa")
ADA = Caller(
    "ada", "t1", "shop",
    (Permission.of("read", "view:visitors"), Permission.of("operator", "job:other")),
)  # fmt: skip


def passed(caller: Caller) -> Caller:
    return read_delegated_token(delegated_token(caller, ASKED, KEY, 0), ASKED, KEY, 1)


def test_a_delegated_token_has_the_caller_and_their_permissions_in_the_job() -> None:
    assert passed(ADA) == replace(ADA, granted=ADA.granted[:1])


def test_everything_is_the_whole_job_and_no_more() -> None:
    admin = passed(replace(ADA, granted=(Permission.of("admin", "*"),)))
    assert admin.allows(Operation.MANAGE, admin.whole_job)
    assert admin.allows(Operation.SEND, object_of("stream", "clicks"))
    assert not admin.allows(Operation.MANAGE, EVERYTHING)


def test_a_token_that_carries_another_job_carries_nothing_here() -> None:
    narrow = replace(ADA, on=(object_of("job", "other"),))
    assert not passed(narrow).allows(Operation.READ, object_of("view", "visitors"))


@pytest.mark.parametrize(
    ("asked", "key", "now"),
    [(ASKED, OTHER, 1), (ASKED.replace("GET", "POST"), KEY, 1), (ASKED, KEY, LIFE_US)],
    ids=["another key", "another request", "too late"],
)
def test_a_delegated_token_is_valid_for_one_job_and_one_request_for_a_short_time(
    asked: str, key: bytes, now: int
) -> None:
    with pytest.raises(Unauthenticated, match="was not issued by this job's server"):
        read_delegated_token(delegated_token(ADA, ASKED, KEY, 0), asked, key, now)


@pytest.mark.parametrize("text", ["", ".", "e30=.00", "ä.ö", "x" * 10_000])
def test_a_token_that_is_not_valid_is_refused(text: str) -> None:
    with pytest.raises(Unauthenticated):
        read_delegated_token(text, ASKED, KEY, 1)


def test_a_changed_word_is_noticed() -> None:
    text, _, signature = delegated_token(ADA, ASKED, KEY, 0).partition(".")
    forged = delegated_token(replace(ADA, user="admin"), ASKED, OTHER, 0).partition(".")[0]
    assert forged != text
    with pytest.raises(Unauthenticated):
        read_delegated_token(f"{forged}.{signature}", ASKED, KEY, 1)
