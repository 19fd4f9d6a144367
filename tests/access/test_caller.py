"""The one rule: some grant covers operation and object, within what the token carries."""

from __future__ import annotations

import pytest

from headrace.access.caller import Caller, Permission
from headrace.access.object import EVERYTHING, Object, object_of, read_object
from headrace.access.operation import Operation, operations_of
from headrace.core.errors import BadRequest, Forbidden

CLICKS, ORDERS = object_of("stream", "Clicks"), object_of("stream", "orders")
VIEW = object_of("view", "clicks")


def caller(*granted: tuple[str, str], may: str = "", on: str = "") -> Caller:
    return Caller(
        "ada", "t", "shop", tuple(Permission.of(*grant) for grant in granted),
        operations_of(may) if may else frozenset(), (read_object(on),) if on else (),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("asks", "allowed"),
    [
        (caller(), []),
        (caller(("sender", "*")), [CLICKS, ORDERS, VIEW, EVERYTHING]),
        (caller(("send", "stream:CLICKS")), [CLICKS]),
        (caller(("sender", "job:shop")), [CLICKS, ORDERS, VIEW]),
        (caller(("sender", "job:mill")), []),
        (caller(("viewer", "*")), []),
        (caller(("sender", "*"), may="send", on="stream:clicks"), [CLICKS]),
        (caller(("sender", "*"), may="viewer"), []),
        (caller(("sender", "stream:orders"), on="stream:clicks"), []),
        (caller(("sender", "*"), on="job:shop"), [CLICKS, ORDERS, VIEW]),
    ],
)
def test_allowed_is_what_some_grant_covers(asks: Caller, allowed: list[Object]) -> None:
    every = [CLICKS, ORDERS, VIEW, EVERYTHING]
    assert [each for each in every if asks.allows(Operation.SEND, each)] == allowed


def test_a_job_is_all_of_itself_and_no_users() -> None:
    asks = caller(("admin", "job:shop"))
    assert asks.allows(Operation.READ, asks.whole_job)
    assert not asks.allows(Operation.READ, Object("job", "mill"))
    assert not asks.allows(Operation.MANAGE, EVERYTHING)


def test_a_refusal_says_no_more_than_was_asked() -> None:
    with pytest.raises(Forbidden) as raised:
        caller().check(Operation.READ, VIEW, "'clicks'")
    assert raised.value.message == "ada may not read 'clicks'"
    assert raised.value.object == "view:clicks"
    with pytest.raises(Forbidden, match="ada may not read view 'clicks'"):
        caller().check(Operation.READ, VIEW)


@pytest.mark.parametrize("text", ["", "clicks", "stream:", "user:ada", "stream:a\nb", "**"])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="is not an object"):
        read_object(text)
