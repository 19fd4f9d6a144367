"""One watcher for each job that may need one. tests/server/test_watcher.py runs it."""

from __future__ import annotations

import threading

from headrace.server.records import jobs
from headrace.server.watcher import UNSEEN, Seen, Tools, Watcher


class Supervisor:
    """Watches all jobs of a server."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._watchers: dict[str, Watcher] = {}
        self._lock = threading.Lock()

    def start(self) -> None:
        """Watch every job that there is; what runs already is found by its lock."""
        with self._tools.database.read() as db:
            names = [job.name for job in jobs(db)]
        for name in names:
            self.watch(name)

    def watch(self, name: str) -> None:
        """Look at a job at once, and from now on."""
        with self._lock:
            if name not in self._watchers:
                self._watchers[name] = Watcher(name, self._tools)
                self._watchers[name].start()
            self._watchers[name].wake()

    def seen(self, name: str) -> Seen:
        with self._lock:
            watcher = self._watchers.get(name)
        return watcher.seen if watcher else UNSEEN

    def unheard_s(self, name: str) -> float | None:
        """How long ago the process of a job answered; None while there is none."""
        with self._lock:
            watcher = self._watchers.get(name)
        return watcher.unheard_s if watcher else None

    def stop(self) -> None:
        """Watch no longer; the jobs go on."""
        with self._lock:
            watchers = list(self._watchers.values())
        for watcher in watchers:
            watcher.stop()
        for watcher in watchers:
            watcher.join()
