"""Live topics are told to each as far as they may read, and no longer than they may."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
import pytest

from headrace.access.access import Access
from headrace.access.caller import Caller
from headrace.api.live import ReadableSubscription
from headrace.core.errors import Unauthenticated
from headrace.serving.subscriber import Subscriber, SubscriptionEvent
from tests.access.users import TEST, bearer, token_of

from .conftest import STATUS, TOPOLOGY, Shop, condition


@pytest.fixture
def ada(access: Access) -> Any:
    """Reads one view."""
    secret = token_of(access, "ada-live", "read", on="view:visitors")
    yield secret
    access.remove_user("ada-live", TEST)


def heard_by(caller: Caller, *events: SubscriptionEvent) -> list[SubscriptionEvent]:
    subscriber = Subscriber(10, lambda: None, lambda subscriber: None)
    subscriber.offer(list(events))
    return ReadableSubscription(subscriber, lambda: caller).poll()


def raw(state: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(state))


def test_a_view_and_alerts_are_heard_by_those_who_may_read_them(
    stranger: httpx.Client, ada: str
) -> None:
    for topics in ("view:other", "status,view:other", "alerts"):
        response = stranger.get("/v1/live", params={"topics": topics}, headers=bearer(ada))
        assert (condition(response), response.status_code) == ("Forbidden", 403)
    assert response.json()["message"] == "ada-live may not read the topic 'alerts'"


def test_status_and_topology_are_cut(access: Access, ada: str) -> None:
    caller = access.authenticate_token(ada)
    status, topology = heard_by(
        caller,
        SubscriptionEvent("status", raw(STATUS), "1"),
        SubscriptionEvent("topology", raw(TOPOLOGY), "2"),
    )
    assert (status.data.streams, [view.name for view in status.data.views]) == ([], ["visitors"])
    assert ([node.id for node in topology.data.nodes], topology.data.edges) == (
        ["view:visitors"], [],
    )  # fmt: skip


def test_a_change_of_what_is_cut_off_is_not_told(access: Access, ada: str) -> None:
    before = STATUS
    after = msgspec.structs.replace(before, reason="'foreign' broke", streams=[])
    heard = heard_by(
        access.authenticate_token(ada),
        SubscriptionEvent("status", raw(before), "1"),
        SubscriptionEvent("status", raw(after), "2"),
    )
    assert [event.id for event in heard] == ["1"]


def test_an_error_is_told_without_what_it_may_name_and_the_end_as_it_is(
    access: Access, ada: str
) -> None:
    named = SubscriptionEvent("status", raw({"error": {"message": "'foreign' broke"}}), "1")
    error, end = heard_by(access.authenticate_token(ada), named, SubscriptionEvent("end", {}))
    assert msgspec.json.decode(msgspec.json.encode(error.data))["error"]["message"] == (
        "the status is not available now"
    )
    assert end == SubscriptionEvent("end", {})


def test_who_is_not_known_any_more_hears_nothing_more(
    stranger: httpx.Client, shop: Shop, access: Access, ada: str
) -> None:
    caller = access.authenticate_token(ada)
    access.revoke_token(caller.token, TEST)
    subscriber = Subscriber(10, lambda: None, lambda subscriber: None)
    subscriber.offer([SubscriptionEvent("status", raw(STATUS), "1")])
    with pytest.raises(Unauthenticated):
        ReadableSubscription(subscriber, lambda: access.authenticate_token(ada)).poll()
