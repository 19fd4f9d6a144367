"""The machine's side of a project: process, Spark, disk, versions, settings."""

from __future__ import annotations

import msgspec


class ProcessShape(msgspec.Struct, frozen=True):
    """The process that answers; `uptime_s` is null where the project does not run."""

    pid: int
    memory_bytes: int | None
    threads: int
    uptime_s: float | None


class SparkShape(msgspec.Struct, frozen=True):
    """What is set, and what runs if something does."""

    running: bool
    master: str
    version: str | None
    memory: str
    jvm_pid: int | None
    jvm_memory_bytes: int | None


class DiskShape(msgspec.Struct, frozen=True):
    """The disk of the state folder, and how large each part of it is."""

    path: str
    free_bytes: int
    total_bytes: int
    state_bytes: int
    parts: dict[str, int]  # log, master, store, work
    growth_bytes_per_hour: float | None  # None: not enough was seen yet
    runway_hours: float | None  # until it is full at that pace; None: it does not grow


class SettingShape(msgspec.Struct, frozen=True):
    """A setting as headrace.toml writes it; of a secret only whether it is set."""

    name: str
    value: str
    default: str
    meaning: str
    changed: bool
    secret: bool = False


class System(msgspec.Struct, frozen=True):
    at: str
    process: ProcessShape
    spark: SparkShape
    disk: DiskShape
    versions: dict[str, str]
    settings: list[SettingShape]
