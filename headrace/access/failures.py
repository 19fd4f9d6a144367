"""Failed authentications, counted by client address: after a limit within a minute, further
attempts are refused until the minute is over.

All addresses of an IPv6 /64 network count as one, because one client has all of them.
tests/access/test_failures.py controls the clock.
"""

from __future__ import annotations

import math
import threading
from ipaddress import IPv6Address, ip_address, ip_network

from headrace.core.errors import Overloaded
from headrace.core.time import MINUTE, SECOND, Clock

WINDOW_US, ADDRESSES_MAX = MINUTE, 10_000
_NETWORK_BITS = 64


class AuthenticationFailures:
    def __init__(self, most: int, clock: Clock) -> None:
        self._most, self._clock = most, clock
        self._counted: dict[str, tuple[int, int]] = {}  # the count, and the end of its minute
        self._lock = threading.Lock()

    def check(self, address: str) -> None:
        """Overloaded if the address has reached the limit."""
        with self._lock:
            many, ends_at = self._counted.get(client_network(address), (0, 0))
        left_us = ends_at - self._clock()
        if many >= self._most and left_us > 0:
            error = Overloaded(
                f"this address has failed to authenticate {self._most} times within a minute",
                hint="try again after the time in Retry-After.",
            )
            error.retry_after_s = math.ceil(left_us / SECOND)
            raise error

    def record(self, address: str) -> bool:
        """Count a failure; whether it was the last one allowed."""
        now, network = self._clock(), client_network(address)
        with self._lock:
            many, ends_at = self._counted.pop(network, (0, 0))
            if ends_at <= now:
                many, ends_at = 0, now + WINDOW_US
            if len(self._counted) >= ADDRESSES_MAX:
                self._counted.pop(next(iter(self._counted)))
            self._counted[network] = many + 1, ends_at
        return many + 1 == self._most


def client_network(address: str) -> str:
    """The addresses that limits count as one.

    >>> client_network("192.0.2.7"), client_network("2001:db8::7%eth0")
    ('192.0.2.7', '2001:db8::/64')
    """
    found = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address) and not found.ipv4_mapped:
        return str(ip_network((found, _NETWORK_BITS), strict=False))
    return str(found)
