"""A pass says who asks, to one job, for one request, for a short time; nobody else can make one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.access.caller import Allowance, Caller
from headrace.access.object import EVERYTHING, object_of
from headrace.access.operation import Operation
from headrace.access.passing import KEY_BYTES, LIFE_US, asked_for, pass_of, read_pass
from headrace.core.errors import Unauthenticated

KEY, OTHER = b"k" * KEY_BYTES, b"o" * KEY_BYTES
ASKED = asked_for("GET", b"/v1/views/visitors?url=%2Fa")
ADA = Caller(
    "ada", "t1", "shop",
    (Allowance.of("read", "view:visitors"), Allowance.of("operator", "job:other")),
)  # fmt: skip


def passed(caller: Caller) -> Caller:
    return read_pass(pass_of(caller, ASKED, KEY, 0), ASKED, KEY, 1)


def test_a_pass_tells_who_asks_and_what_they_may_in_the_job() -> None:
    assert passed(ADA) == replace(ADA, granted=ADA.granted[:1])


def test_everything_is_the_whole_job_and_no_more() -> None:
    admin = passed(replace(ADA, granted=(Allowance.of("admin", "*"),)))
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
def test_a_pass_is_good_for_one_job_and_one_request_and_not_for_long(
    asked: str, key: bytes, now: int
) -> None:
    with pytest.raises(Unauthenticated, match="this pass is not of this job's server"):
        read_pass(pass_of(ADA, ASKED, KEY, 0), asked, key, now)


@pytest.mark.parametrize("text", ["", ".", "e30=.00", "ä.ö", "x" * 10_000])
def test_what_is_no_pass_is_refused(text: str) -> None:
    with pytest.raises(Unauthenticated):
        read_pass(text, ASKED, KEY, 1)


def test_a_changed_word_is_noticed() -> None:
    text, _, signature = pass_of(ADA, ASKED, KEY, 0).partition(".")
    forged = pass_of(replace(ADA, user="admin"), ASKED, OTHER, 0).partition(".")[0]
    assert forged != text
    with pytest.raises(Unauthenticated):
        read_pass(f"{forged}.{signature}", ASKED, KEY, 1)
