"""A webhook against a receiver that fails, hangs, closes, redirects, talks on and restarts."""

from __future__ import annotations

import hashlib
import hmac
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from headrace.core.time import MILLISECOND
from headrace.define.settings import NotifySettings
from headrace.destination.protocol import Message, Undeliverable
from headrace.destination.webhook import WebhookWriter, public, secrets_of, signature
from tests.run.receiver import Receiver

OURS = NotifySettings(
    hosts=("localhost",), private=True, connect_us=500 * MILLISECOND, answer_us=300 * MILLISECOND
)
# Of ops.example, signed by itself, and of no use to anybody else.
TLS = Path(__file__).parents[1] / "run" / "tls"
NOTICE = Message(1, "abc", b'{"alerts":[]}')


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.stop()


def webhook(receiver: Receiver, settings: NotifySettings = OURS, **said: Any) -> WebhookWriter:
    return WebhookWriter(receiver.url, settings, ["s3cret"], **said)


def test_post_is_signed_and_has_the_key(receiver: Receiver) -> None:
    webhook(receiver, clock=lambda: 1763247216.5).deliver([NOTICE])
    (request,) = receiver.requests
    headers = request["headers"]
    said = hmac.new(b"s3cret", b"1763247216." + NOTICE.body, hashlib.sha256).hexdigest()
    assert (request["path"], request["body"]) == ("/hook?team=ops", NOTICE.body)
    assert headers["X-Headrace-Timestamp"] == "1763247216"
    assert headers["X-Headrace-Signature"] == f"v1={said}"
    assert headers["Idempotency-Key"] == "abc"
    assert headers["Host"] == f"localhost:{receiver.port}"


def test_a_secret_is_replaced_while_receivers_have_either(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEADRACE_NOTIFY_SECRET", raising=False)
    both = replace(OURS, secret="new", secret_before="old")
    action = WebhookWriter(receiver.url, both, secrets_of(both), clock=lambda: 1763247216.5)
    action.deliver([NOTICE])
    said = receiver.requests[0]["headers"]["X-Headrace-Signature"]
    expected = [signature(secret, "1763247216", NOTICE.body) for secret in ("new", "old")]
    assert said.split(",") == expected
    monkeypatch.setenv("HEADRACE_NOTIFY_SECRET", "newest")
    monkeypatch.setenv("HEADRACE_NOTIFY_SECRET_BEFORE", "new")
    assert secrets_of(both) == ("newest", "new")
    assert secrets_of(replace(both, secret_before="")) == ("newest", "new")
    monkeypatch.delenv("HEADRACE_NOTIFY_SECRET_BEFORE")
    assert secrets_of(replace(both, secret_before="")) == ("newest",)


@pytest.mark.parametrize("mood", ["500", "503", "408", "429", "hang", "close"])
def test_what_may_be_better_later_is_tried_again(mood: str, receiver: Receiver) -> None:
    receiver.mood = mood
    with pytest.raises(Exception) as failed:
        webhook(receiver).deliver([NOTICE])
    assert not isinstance(failed.value, Undeliverable)


@pytest.mark.parametrize("mood", ["400", "401", "404", "410", "redirect"])
def test_other_refusals_are_final(mood: str, receiver: Receiver) -> None:
    receiver.mood = mood
    with pytest.raises(Undeliverable) as failed:
        webhook(receiver).deliver([NOTICE])
    status = "302" if mood == "redirect" else mood
    assert str(failed.value) == f"the response status is {status}"
    assert len(receiver.requests) == 1, "a redirect is not followed"


@pytest.mark.parametrize("mood", ["huge", "trickle"])
def test_long_answers_are_read_up_to_a_limit(mood: str, receiver: Receiver) -> None:
    receiver.mood, began = mood, time.monotonic()
    webhook(receiver).deliver([NOTICE])
    assert time.monotonic() - began < 2


def test_nobody_there_is_tried_again(receiver: Receiver) -> None:
    action = webhook(receiver)
    receiver.stop()
    with pytest.raises(Exception) as failed:
        action.deliver([NOTICE])
    assert not isinstance(failed.value, Undeliverable)
    receiver.start()
    action.deliver([NOTICE])


def resolving(*addresses: str) -> Any:
    def resolve(host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (a, port)) for a in addresses]

    return resolve


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "192.168.0.1", "169.254.169.254", "::1", "fe80::1%eth0", "fc00::1",
     "::ffff:127.0.0.1", "2002:7f00:1::", "64:ff9b::7f00:1", "0.0.0.0", "100.64.0.1", "224.0.0.1",
     "::127.0.0.1", "::a01:203", "64:ff9b:1::7f00:1", "64:ff9b:1:fffe::a01:203", "fec0::1",
     "feff::1", "5f00::1", "3fff::1", "3fff:fff::1", "192.88.99.1", "192.88.99.255",
     "2001:0:7f00:1::", "::", "255.255.255.255", "240.0.0.1", "198.18.0.1", "192.0.0.170",
     "2001:db8::1", "2001:2::1", "100::1", "ff0e::1", "::ffff:0:10.0.0.1", "::ffff:192.88.99.1",
     "2002:c058:6301::", "2001:20::1"],
)  # fmt: skip
def test_private_addresses_are_refused(address: str) -> None:
    assert not public(address)
    settings = NotifySettings(hosts=("ops.example",))
    action = WebhookWriter(
        "https://ops.example/hook", settings, ["x"], resolve=resolving("1.1.1.1", address)
    )
    with pytest.raises(Undeliverable) as failed:
        action.deliver([NOTICE])
    assert str(failed.value) == (
        f"host 'ops.example' resolves to {address}, which is not a public address"
    )


@pytest.mark.parametrize(
    "address",
    ["1.1.1.1", "93.184.216.34", "192.88.98.1", "192.88.100.1", "2606:4700::1111", "2a00:1450::1",
     "2003::1", "2002:101:101::", "::ffff:1.1.1.1"],
)  # fmt: skip
def test_addresses_of_the_open_internet_are_let_through(address: str) -> None:
    assert public(address)


def test_host_that_is_not_named_and_plain_http_are_refused(receiver: Receiver) -> None:
    with pytest.raises(Undeliverable, match=r"host 'localhost' is not listed in notify.hosts"):
        webhook(receiver, NotifySettings(private=True)).deliver([NOTICE])
    with pytest.raises(Undeliverable, match=r"the URL is not https"):
        webhook(receiver, NotifySettings(hosts=("localhost",))).deliver([NOTICE])
    assert receiver.requests == []


def test_name_is_resolved_once_and_the_address_that_was_seen_is_used(receiver: Receiver) -> None:
    asked: list[str] = []

    def resolve(host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
        asked.append(host)
        return resolving("127.0.0.1" if len(asked) == 1 else "192.0.2.1")(host, port)

    settings = NotifySettings(hosts=("ops.example",), private=True)
    url = f"http://ops.example:{receiver.port}/"
    action = WebhookWriter(url, settings, ["x"], resolve=resolve)
    action.deliver([NOTICE])
    assert asked == ["ops.example"]
    assert receiver.requests[0]["headers"]["Host"] == f"ops.example:{receiver.port}"


@pytest.fixture
def tls() -> Iterator[Receiver]:
    made = Receiver(certificate=TLS)
    yield made
    made.stop()


@pytest.mark.parametrize("host", ["ops.example", "other.example"])
def test_certificate_is_checked_for_the_name_though_an_address_is_called(
    host: str, tls: Receiver
) -> None:
    trusted = ssl.create_default_context(cafile=str(TLS / "cert.pem"))
    settings = NotifySettings(hosts=("ops.example", "other.example"), private=True)
    action = WebhookWriter(
        f"https://{host}:{tls.port}/",
        settings,
        ["x"],
        resolve=resolving("127.0.0.1"),
        verify=trusted,
    )
    if host == "ops.example":
        action.deliver([NOTICE])
        assert tls.requests[0]["headers"]["Host"] == f"ops.example:{tls.port}"
    else:
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            action.deliver([NOTICE])
        assert tls.requests == []
