"""A child process and its descendants: their lines as they come, and the most memory they held."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Child:
    """Runs a command; `lines` are (seconds since start, text)."""

    command: list[str]
    lines: list[tuple[float, str]] = field(default_factory=list)
    seconds: float = 0.0
    memory_mb: float = 0.0

    def run(self, cwd: Path, log: Path) -> Child:
        began = time.monotonic()
        with log.open("wb") as errors:
            process = subprocess.Popen(
                self.command, cwd=cwd, stdout=subprocess.PIPE, stderr=errors, text=True
            )
            watcher = threading.Thread(target=self._watch, args=(process,), daemon=True)
            watcher.start()
            assert process.stdout is not None
            for line in process.stdout:
                self.lines.append((time.monotonic() - began, line.strip()))
            code = process.wait()
        self.seconds = time.monotonic() - began
        if code:
            raise SystemExit(f"{' '.join(self.command)} failed:\n{log.read_text()[-2000:]}")
        return self

    def _watch(self, process: subprocess.Popen[str]) -> None:
        while process.poll() is None:
            self.memory_mb = max(self.memory_mb, tree_memory_mb(process.pid))
            time.sleep(0.2)


def wait_ready(process: subprocess.Popen[str]) -> str:
    """The address of `headrace run --json`, once it is ready; what it says later is dropped."""
    url = ""
    assert process.stdout is not None
    for line in process.stdout:
        told = json.loads(line)
        url = str(told.get("url", url))
        if told.get("kind") == "ready":
            threading.Thread(target=process.stdout.read, daemon=True).start()
            return url
    raise SystemExit("the instance ended before it was ready")


def tree_memory_mb(pid: int) -> float:
    """Resident memory of a process and all below it; pages that they share count once each."""
    return sum(map(memory_mb, _tree(pid)))


def _tree(pid: int) -> list[int]:
    """A process and all below it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for current in found:
        found += children.get(current, [])
    return found


def tree_cpu_s(pid: int) -> float:
    """Processor time of a process and all below it, also of those below that have ended."""
    total = 0.0
    for current in _tree(pid):
        try:
            fields = Path(f"/proc/{current}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return total


def memory_mb(pid: int) -> float:
    """Resident memory of one process, or nothing once it has ended."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return sum(int(at.split()[1]) for at in rollup.splitlines() if at.startswith("Pss:")) / 1024
