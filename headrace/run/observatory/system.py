"""Process, Spark, disk, versions and settings of a project; secrets are masked.

tests/run/test_observatory.py reads it.
"""

from __future__ import annotations

import os
import platform
import re
import threading
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from headrace.api.resources.system import (
    ProcessInfo,
    SettingInfo,
    SparkInfo,
    System,
    SystemRequest,
)
from headrace.core.time import SECOND, duration_text, iso
from headrace.core.version import __version__
from headrace.define.setting import key_of
from headrace.define.settings import Settings, documented
from headrace.run.observatory.disk import disk_of
from headrace.run.observatory.observed_project import ObservedProject, RuntimeInfo
from headrace.serving.sqlite_files import sqlite_version

_PACKAGES = ("pyspark", "pyarrow", "deltalake", "duckdb", "sqlglot", "msgspec", "starlette")
_SECRET = re.compile(r"(secret|_key)(_before)?$")  # names of settings
_SECRET_CONF = re.compile(r"secret|password|passwd|token|credential|key", re.IGNORECASE)
SET, HIDDEN = "set", "•••"


def system_of(service: ObservedProject, request: SystemRequest) -> System:
    """The resources of a project."""
    now, runtime = service.store.clock(), service.runtime_info()
    return System(
        iso(now),
        _process(runtime, now, service.query_service.reader.model.bytes),
        _spark(service.project.settings, runtime),
        disk_of(service.layout, service.cache.growth),
        _versions(),
        list(_settings(service.project.settings)),
    )


def _process(runtime: RuntimeInfo, now_us: int, kept: int) -> ProcessInfo:
    began, pid = runtime.started_at_us, os.getpid()
    uptime = (now_us - began) / SECOND if began is not None else None
    return ProcessInfo(pid, memory_of(pid), threading.active_count(), uptime, kept)


def _spark(settings: Settings, runtime: RuntimeInfo) -> SparkInfo:
    pid = runtime.jvm_pid
    return SparkInfo(
        runtime.spark_version is not None,
        settings.spark.master,
        runtime.spark_version,
        settings.spark.memory,
        pid,
        memory_of(pid) if pid else None,
    )


def memory_of(pid: int) -> int | None:
    """Resident memory of a process in bytes; None if the system does not report it."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def _versions() -> dict[str, str]:
    found = {"headrace": __version__, "python": platform.python_version()}
    found["sqlite"] = sqlite_version
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _settings(settings: Settings) -> Iterator[SettingInfo]:
    values = dict(_values(settings))
    for name, default, meaning in documented():
        value, secret = values[name], bool(_SECRET.search(name))
        shown = (SET if value else "") if secret else _text(value)
        changed = shown != _text(default) and name != "name"
        yield SettingInfo(name, shown, _text(default), meaning, changed, secret)


def _values(settings: Settings) -> Iterator[tuple[str, Any]]:
    """Each setting as headrace.toml would write it."""
    for item in fields(settings):
        value = getattr(settings, item.name)
        if not is_dataclass(value):
            yield item.name, value
            continue
        for inner in fields(value):
            field_value = getattr(value, inner.name)
            default = inner.metadata["text"]
            if inner.metadata.get("duration"):
                same = field_value == inner.default
                field_value = default if same else duration_text(field_value)
            yield f"{item.name}.{key_of(inner)}", field_value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        pairs = ((k, HIDDEN if _SECRET_CONF.search(k) else v) for k, v in value.items())
        return ", ".join(f"{k} = {v}" for k, v in pairs)
    return ", ".join(value) if isinstance(value, (tuple, list)) else str(value)
