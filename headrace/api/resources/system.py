"""The machine's side of a project: process, Spark, disk, versions, settings."""

from __future__ import annotations

import msgspec

from headrace.api import needs
from headrace.api.get_request import Endpoint, GetRequest


class ProcessInfo(msgspec.Struct, frozen=True):
    """The process that answers; `uptime_s` is null if the project is not running."""

    pid: int
    memory_bytes: int | None
    threads: int
    uptime_s: float | None
    kept_rows_bytes: int = 0  # of the memory: cached rows of views


class SparkInfo(msgspec.Struct, frozen=True):
    """The settings of Spark, and its process if it is running."""

    running: bool
    master: str
    version: str | None
    memory: str
    jvm_pid: int | None
    jvm_memory_bytes: int | None


class DiskUsage(msgspec.Struct, frozen=True):
    """The disk of the state folder, and how large each part of it is."""

    path: str
    free_bytes: int
    total_bytes: int
    state_bytes: int
    parts: dict[str, int]  # log, master, store, work
    growth_bytes_per_hour: float | None  # None: there are too few samples yet
    runway_hours: float | None  # until it is full at that rate; None: it does not grow


class SettingInfo(msgspec.Struct, frozen=True):
    """A setting in the notation of headrace.toml; the value of a secret is not shown."""

    name: str
    value: str
    default: str
    meaning: str
    changed: bool
    secret: bool = False


class System(msgspec.Struct, frozen=True):
    at: str
    process: ProcessInfo
    spark: SparkInfo
    disk: DiskUsage
    versions: dict[str, str]
    settings: list[SettingInfo]


class SystemRequest(GetRequest[System], frozen=True):
    """The process, Spark, the disk, versions and settings."""

    endpoint = Endpoint("/v1/system", "system", needs.reads(needs.JOB))
