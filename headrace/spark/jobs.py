"""The Spark jobs of the batch layer, which are cancelled when the run is stopped.

A build of a long history takes hours, and a partial build is of no use: the next build discards its
staged rows. A cancelled job raises in the thread that waits for it.
tests/spark/test_jobs.py cancels a job that would not end.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

POLL_S = 0.5
_GROUP = "batch"


class BatchJobs:
    """A Spark job group; threads join it."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def join(self) -> None:
        """From now on, the jobs of this thread belong to the group."""
        self._spark.sparkContext.setJobGroup(_GROUP, "archive and builds")

    def cancel(self) -> None:
        self._spark.sparkContext.cancelJobGroup(_GROUP)

    @contextmanager
    def cancelled_by(self, stop: threading.Event) -> Iterator[None]:
        """Cancel the jobs of this block once `stop` is set; the exception is then suppressed."""
        self.join()
        done = threading.Event()

        def watch() -> None:
            while not done.wait(POLL_S):
                if stop.is_set():
                    self.cancel()

        watcher = threading.Thread(target=watch, name="cancel batch", daemon=True)
        watcher.start()
        try:
            yield
        except Exception:
            if not stop.is_set():
                raise
        finally:
            done.set()
            watcher.join()
