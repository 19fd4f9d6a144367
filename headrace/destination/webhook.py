"""NOTIFY 'https://…': one signed POST per notification, to an address that was checked.

The host must be in `notify.hosts`. It is resolved once for each attempt; all its addresses must be
public unless `notify.private` is set, and the connection goes to one of these addresses, with the
certificate checked for the host name. Redirects are not followed, no proxy is used, and the size of
a response is limited. A status of 2xx is a success; 408, 429, 5xx and network errors are retried;
every other status is final.

    X-Headrace-Signature: v1=hex(hmac_sha256(secret, timestamp + "." + body))

While a secret is rotated, the header has a signature with the new secret and one with the previous
secret, separated by a comma, so that receivers with either secret accept the request.
tests/destination/test_webhook.py has a receiver that does each thing wrong.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import socket
import time
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from sqlglot.tokenizer_core import TokenType

from headrace.core.errors import BadSetting, Unsupported
from headrace.core.time import SECOND
from headrace.define.definitions import Sender
from headrace.define.settings import NotifySettings
from headrace.define.tokens import TokenCursor
from headrace.destination.protocol import (
    AnyDestination,
    DestinationContext,
    DestinationWriter,
    Message,
    Undeliverable,
)

if TYPE_CHECKING:
    import httpx

    from headrace.define.project import Project

URL_MAX = 2_000
SECRET, SECRET_BEFORE = "HEADRACE_NOTIFY_SECRET", "HEADRACE_NOTIFY_SECRET_BEFORE"
_RETRIED = frozenset({408, 429})
# The range excludes loopback, private, link- and site-local, multicast, NAT64 (RFC 6052, 8215),
# segment routing (RFC 9602) and obsolete forms of IPv4 addresses.
_UNICAST = ip_network("2000::/3")
# Global by Python, but not used: documentation (RFC 9637), and relays of 6to4.
_UNUSED = (ip_network("3fff::/20"), ip_network("192.88.99.0/24"))
Resolve = Callable[..., list[tuple[Any, ...]]]


class WebhookDestination(AnyDestination, frozen=True):
    usage = "a quoted URL"

    @classmethod
    def accept(cls, tokens: TokenCursor) -> bool:
        return tokens.kind() is TokenType.STRING

    @classmethod
    def read(cls, tokens: TokenCursor) -> Self:
        origin, url = tokens.origin, tokens.literal()
        try:
            parts = urlsplit(url)
            known = parts.scheme in {"http", "https"} and parts.hostname and (parts.port or 1)
        except ValueError:
            known = False
        if not known or len(url) > URL_MAX or not url.isprintable() or " " in url:
            raise tokens.error(f"'{url[:100]}' is not a URL such as 'https://host/path'", origin)
        if parts.username is not None or parts.fragment:
            raise tokens.error("the URL must not have a user, password or fragment", origin)
        return cls(url)

    def check(self, project: Project, sender: Sender) -> None:
        notify, parts = project.settings.notify, urlsplit(self.target)
        host = (parts.hostname or "").lower()
        if parts.scheme != "https" and not notify.private:
            raise Unsupported(
                f"{sender.said} notifies '{self.target}', which is not https",
                hint="use https, or set notify.private = true for a network that is your own.",
                origin=sender.origin,
            )
        if host not in {name.lower() for name in notify.hosts}:
            raise Unsupported(
                f"{sender.said} notifies host '{host}', which is not listed in notify.hosts",
                hint=f'write in headrace.toml: [notify] hosts = ["{host}"]',
                origin=sender.origin,
            )

    def connect(self, context: DestinationContext) -> DestinationWriter:
        notify = context.project.settings.notify
        if not (secrets := secrets_of(notify)):
            raise BadSetting(
                f"a rule notifies '{self.target}', which requires a secret for its signature",
                hint=f"set {SECRET} in the environment, or notify.secret in headrace.toml.",
            )
        return WebhookWriter(self.target, notify, secrets)


class WebhookWriter(DestinationWriter):
    batch_max = 1

    def __init__(
        self,
        url: str,
        settings: NotifySettings,
        secrets: Sequence[str],
        *,
        resolve: Resolve = socket.getaddrinfo,
        clock: Callable[[], float] = time.time,
        verify: Any = True,
    ) -> None:
        import httpx  # here, because parsing a definition does not use it

        self.url, self.settings, self.secrets = httpx.URL(url), settings, secrets
        self.resolve, self.clock, self.verify = resolve, clock, verify

    def deliver(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self._post(message)

    def _post(self, message: Message) -> None:
        import httpx

        self._check_url()
        timeout = httpx.Timeout(
            self.settings.answer_us / SECOND, connect=self.settings.connect_us / SECOND
        )
        address = self._address()
        with (
            httpx.Client(timeout=timeout, trust_env=False, verify=self._verified()) as client,
            client.stream(
                "POST",
                self.url.copy_with(host=address),
                content=message.body,
                headers=self._headers(message),
                extensions={"sni_hostname": self.url.host},
            ) as response,
        ):
            self._read(response)
            _check_status(response.status_code)

    def _check_url(self) -> None:
        """Repeat the check of the compiler, because the settings may have changed since."""
        allowed = {host.lower() for host in self.settings.hosts}
        if self.url.host.lower() not in allowed:
            raise Undeliverable(f"host '{self.url.host}' is not listed in notify.hosts")
        if self.url.scheme != "https" and not self.settings.private:
            raise Undeliverable("the URL is not https")

    def _verified(self) -> Any:
        return self.verify if self.url.scheme == "https" else False

    def _address(self) -> str:
        """One address of the host; raises if any of them is not allowed."""
        port = self.url.port or (443 if self.url.scheme == "https" else 80)
        entries = self.resolve(self.url.host, port, type=socket.SOCK_STREAM)
        addresses = [str(entry[4][0]) for entry in entries]
        private = [address for address in addresses if not public(address)]
        if private and not self.settings.private:
            raise Undeliverable(
                f"host '{self.url.host}' resolves to {private[0]}, which is not a public address"
            )
        return addresses[0]

    def _headers(self, message: Message) -> dict[str, str]:
        timestamp = str(int(self.clock()))
        return {
            "Host": self.url.netloc.decode("ascii"),
            "Content-Type": "application/json",
            "User-Agent": "headrace",
            "Idempotency-Key": message.key,
            "X-Headrace-Timestamp": timestamp,
            "X-Headrace-Signature": ",".join(
                signature(secret, timestamp, message.body) for secret in self.secrets
            ),
        }

    def _read(self, response: httpx.Response) -> None:
        """Read the response, up to the limits of size and time."""
        size, ends = 0, time.monotonic() + self.settings.answer_us / SECOND
        for part in response.iter_raw():
            size += len(part)
            if size > self.settings.answer_bytes_max or time.monotonic() > ends:
                return


def secrets_of(settings: NotifySettings) -> tuple[str, ...]:
    """The secrets for signatures: the current one, and during rotation the previous one."""
    current = os.environ.get(SECRET, settings.secret)
    previous = os.environ.get(SECRET_BEFORE, settings.secret_before)
    return tuple(secret for secret in (current, previous) if secret)


def _check_status(status: int) -> None:
    if 200 <= status < 300:
        return
    if status in _RETRIED or status >= 500:
        raise ConnectionError(f"the response status is {status}")
    raise Undeliverable(f"the response status is {status}")


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """The signature, which the receiver computes too and compares.

    >>> signature("s3cret", "1763247216", b"{}")[:19]
    'v1=cac2716af8a89b4b'
    """
    message = timestamp.encode() + b"." + body
    return "v1=" + hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


def public(address: str) -> bool:
    """Whether an address is a public one.

    >>> [public(a) for a in ("1.1.1.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:10.0.0.1")]
    [True, False, False, False, False]
    """
    parsed = ip_address(address.partition("%")[0])
    if isinstance(parsed, IPv6Address):
        inner = parsed.ipv4_mapped or parsed.sixtofour
        if inner is not None:
            return public(str(inner))
        if parsed not in _UNICAST or parsed.teredo:
            return False
    return parsed.is_global and not parsed.is_multicast and not _unused(parsed)


def _unused(address: IPv4Address | IPv6Address) -> bool:
    return any(address in network for network in _UNUSED)
