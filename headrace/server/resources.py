"""The resources of jobs, the capacity of a server, and whether a job fits.

A job holds its resources while its desired state is running, also while its process is restarted.
In a pool it uses only the memory of its driver on the server; the cores are those of the pool.
tests/server/test_resources.py reads each refusal.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

import msgspec

from headrace.core.errors import BadRequest, Conflict
from headrace.core.msgspec_types import prepare_types
from headrace.server.settings import RoomSettings

_MEMORY = re.compile(r"([1-9][0-9]{0,9})([kmgt])b?")
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
CORES_MAX = 10_000


class JobResources(msgspec.Struct, frozen=True):
    """The resources of one job."""

    cores: int = 1
    memory: str = "2g"
    pool: str = ""
    tags: list[str] = []

    @property
    def cores_on_server(self) -> int:
        return 0 if self.pool else self.cores


class ServerCapacity(msgspec.Struct, frozen=True):
    """The resources of a server for jobs."""

    cores: int
    memory: int
    tags: list[str] = []
    pools: dict[str, str] = {}

    @staticmethod
    def of(settings: RoomSettings) -> ServerCapacity:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return ServerCapacity(
            settings.cores or os.cpu_count() or 1,
            memory_bytes(settings.memory) if settings.memory else machine,
            list(settings.tags),
            dict(settings.pools),
        )

    def master(self, resources: JobResources) -> str:
        """The Spark master of a job with these resources."""
        if not resources.pool:
            return f"local[{resources.cores}]"
        if resources.pool not in self.pools:
            raise Conflict(
                f"the pool '{resources.pool}' is not in server.toml",
                hint="add it to room.pools and restart the server, or apply with another one.",
            )
        return self.pools[resources.pool]

    def check(self, resources: JobResources, taken: Iterable[JobResources]) -> None:
        """Conflict if the resources are not free."""
        self._check_names(resources)
        others, needed = list(taken), memory_bytes(resources.memory)
        cores = self.cores - sum(other.cores_on_server for other in others)
        memory = self.memory - sum(memory_bytes(other.memory) for other in others)
        if resources.cores_on_server > cores or needed > memory:
            raise Conflict(
                f"the job requests {_amount(resources.cores_on_server, needed)}, "
                f"but only {_amount(max(cores, 0), max(memory, 0))} are free",
                detail=f"the server has {_amount(self.cores, self.memory)}.",
                hint="request less, pause or cancel another job, or raise [room] in server.toml.",
            )

    def _check_names(self, resources: JobResources) -> None:
        if missing := sorted(set(resources.tags) - set(self.tags)):
            raise Conflict(
                f"the job requires tags that this server does not have: {_quoted(missing)}",
                detail=f"the server's tags are {_quoted(sorted(self.tags)) or 'none'}.",
                hint="see room.tags in server.toml.",
            )
        if resources.pool and resources.pool not in self.pools:
            raise Conflict(
                f"there is no Spark pool '{resources.pool}'",
                detail=f"available pools: {_quoted(sorted(self.pools)) or 'none'}.",
                hint="see room.pools in server.toml.",
            )


class ResourceRequest(msgspec.Struct, frozen=True):
    """The requested resources of a job; None keeps the current or default value.

    >>> ResourceRequest(cores=2).applied_to(JobResources(1, "1g", tags=["gpu"]))
    JobResources(cores=2, memory='1g', pool='', tags=['gpu'])
    """

    cores: int | None = None
    memory: str | None = None
    pool: str | None = None
    tags: list[str] | None = None

    def applied_to(self, before: JobResources) -> JobResources:
        fields = msgspec.structs.asdict(self).items()
        given = {name: value for name, value in fields if value is not None}
        return check_resources(msgspec.structs.replace(before, **given))


def check_resources(resources: JobResources) -> JobResources:
    """BadRequest if the resources are not valid."""
    memory_bytes(resources.memory)
    if not 1 <= resources.cores <= CORES_MAX:
        raise BadRequest(f"cores must be from 1 to {CORES_MAX}, not {resources.cores}")
    return resources


def memory_bytes(text: str) -> int:
    """The number of bytes in Spark's notation.

    >>> memory_bytes("512m"), memory_bytes("2G")
    (536870912, 2147483648)
    """
    found = _MEMORY.fullmatch(text.lower())
    if not found:
        raise BadRequest(f"'{text[:40]}' is not a valid amount of memory", hint="write 512m or 2g.")
    return int(found[1]) * _UNITS[found[2]]


def _amount(cores: int, memory: int) -> str:
    return f"{cores} {'core' if cores == 1 else 'cores'} and {memory / (1 << 30):.1f} GiB"


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


prepare_types(JobResources, ServerCapacity)
