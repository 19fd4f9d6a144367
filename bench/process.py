"""A child process and its descendants: their lines as they come, and the most memory they held."""

from __future__ import annotations

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


def tree_memory_mb(pid: int) -> float:
    """Resident memory of a process and all below it; pages that they share count once each."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            parents.setdefault(parent, []).append(int(entry.name))
    total, todo = 0.0, [pid]
    while todo:
        current = todo.pop()
        todo += parents.get(current, [])
        try:
            rollup = Path(f"/proc/{current}/smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(
            int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")
        )
    return total / 1024
