"""What a job needs of a server, what the server has, and whether the one fits into the other.

A job holds its place while it is wanted to run, also while it is dead for a moment. In a pool only
its driver's memory is the server's; the cores are the pool's.
tests/server/test_place.py reads each refusal.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

import msgspec

from headrace.core.errors import BadRequest, Conflict
from headrace.core.learned import learn
from headrace.server.settings import RoomSettings

_MEMORY = re.compile(r"([1-9][0-9]{0,9})([kmgt])b?")
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
CORES_MAX = 10_000


class Place(msgspec.Struct, frozen=True):
    """What one job needs."""

    cores: int = 1
    memory: str = "2g"
    pool: str = ""
    tags: list[str] = []

    @property
    def cores_here(self) -> int:
        return 0 if self.pool else self.cores


class Room(msgspec.Struct, frozen=True):
    """What a server has for jobs."""

    cores: int
    memory: int
    tags: list[str] = []
    pools: dict[str, str] = {}

    @staticmethod
    def of(settings: RoomSettings) -> Room:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return Room(
            settings.cores or os.cpu_count() or 1,
            memory_bytes(settings.memory) if settings.memory else machine,
            list(settings.tags),
            dict(settings.pools),
        )

    def master(self, place: Place) -> str:
        """The Spark master of a job that has this place."""
        if not place.pool:
            return f"local[{place.cores}]"
        if place.pool not in self.pools:
            raise Conflict(
                f"the pool '{place.pool}' is not in server.toml",
                hint="put it into room.pools and start the server anew, or apply with another.",
            )
        return self.pools[place.pool]

    def check(self, place: Place, taken: Iterable[Place]) -> None:
        """Refuse a place that is not free."""
        self._check_names(place)
        others = list(taken)
        cores = self.cores - sum(other.cores_here for other in others)
        memory = self.memory - sum(memory_bytes(other.memory) for other in others)
        if place.cores_here > cores or memory_bytes(place.memory) > memory:
            raise Conflict(
                f"the job needs {_amount(place.cores_here, memory_bytes(place.memory))}, "
                f"and {_amount(max(cores, 0), max(memory, 0))} are free",
                detail=f"the server has {_amount(self.cores, self.memory)}.",
                hint="ask for less, pause or cancel another job, or raise [room] in server.toml.",
            )

    def _check_names(self, place: Place) -> None:
        if missing := sorted(set(place.tags) - set(self.tags)):
            raise Conflict(
                f"the job needs a server with {_quoted(missing)}, and this one lacks it",
                detail=f"its tags are {_quoted(sorted(self.tags)) or 'none'}.",
                hint="see room.tags in server.toml.",
            )
        if place.pool and place.pool not in self.pools:
            raise Conflict(
                f"there is no Spark pool '{place.pool}'",
                detail=f"the pools are {_quoted(sorted(self.pools)) or 'none'}.",
                hint="see room.pools in server.toml.",
            )


def checked_place(place: Place) -> Place:
    """A place whose numbers can be meant."""
    memory_bytes(place.memory)
    if not 1 <= place.cores <= CORES_MAX:
        raise BadRequest(f"cores must be from 1 to {CORES_MAX}, not {place.cores}")
    return place


def memory_bytes(text: str) -> int:
    """The number of bytes in Spark's notation.

    >>> memory_bytes("512m"), memory_bytes("2G")
    (536870912, 2147483648)
    """
    found = _MEMORY.fullmatch(text.lower())
    if not found:
        raise BadRequest(f"'{text[:40]}' is no amount of memory", hint="write 512m or 2g.")
    return int(found[1]) * _UNITS[found[2]]


def _amount(cores: int, memory: int) -> str:
    return f"{cores} {'core' if cores == 1 else 'cores'} and {memory / (1 << 30):.1f} GiB"


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


learn(Place, Room)
