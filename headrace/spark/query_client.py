"""The client of a worker process for ad-hoc SQL, which runs in its own process so that it cannot
harm the pipeline.

A worker is started when it is first needed and kept warm; it runs one query at a time, which
headrace/spark/query_pool.py schedules. At its time limit a query is ended by killing the worker's
process group, which works whatever the query does; the next query starts a new worker. The worker
ends when this process does. This module does not import pyspark, so the API needs no JVM.
tests/spark/test_query_worker.py checks this with a real worker, and
tests/spark/test_query_client.py kills one at the worst times.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import msgspec

from headrace.core import errors
from headrace.core.cancellation import Cancellation
from headrace.core.errors import EngineFailed, HeadraceError, LimitReached, Unavailable
from headrace.define.settings import QuerySettings, SparkSettings

WORKER = (sys.executable, "-m", "headrace.spark.query_worker")
_START_SECONDS_MAX = 120.0


class Relation(msgspec.Struct, frozen=True):
    """A relation that the query may read: files, or a SELECT over the relations before it."""

    name: str
    kind: str = "parquet"  # parquet, csv, json or arrow_file
    paths: list[str] = []
    schema_ddl: str = ""
    options: dict[str, str] = {}
    filter: str | None = None  # a Spark predicate, never from a user
    query: str | None = None  # instead of files
    hidden: bool = False  # readable by later relations only, not by the user's query


class QueryRequest(msgspec.Struct, frozen=True):
    """One query; only `sql` comes from a user."""

    sql: str
    relations: list[Relation] = []
    functions_file: str | None = None
    explain: bool = False  # the result is Spark's plan; the query is not run
    deterministic: bool = False  # refused if it is not deterministic


class ResultColumn(msgspec.Struct, frozen=True):
    name: str
    type: str


class QueryResult(msgspec.Struct, frozen=True):
    """A result as JSON values; `truncated` if there were more rows than the limit."""

    columns: list[ResultColumn]
    rows: list[list[Any]]
    truncated: bool = False


class WorkerConfig(msgspec.Struct, frozen=True):
    """The settings of a worker, which are the first line sent to it."""

    spark: SparkSettings
    query: QuerySettings
    work: str


class WorkerReply(msgspec.Struct, frozen=True):
    """A line from a worker: an error, a result, or neither if it is ready for a request."""

    error: dict[str, str | None] | None = None
    result: QueryResult | None = None


@dataclass(frozen=True, slots=True)
class _Worker:
    process: subprocess.Popen[bytes]
    lines: queue.SimpleQueue[bytes]  # an empty line: the worker has ended

    def send(self, message: Any) -> None:
        pipe = self.process.stdin
        assert pipe is not None
        # If the worker has ended or was killed meanwhile, reading its reply reports that.
        with contextlib.suppress(BrokenPipeError, ValueError):
            pipe.write(msgspec.json.encode(message) + b"\n")
            pipe.flush()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()


class QueryClient:
    """Runs ad-hoc queries on Spark for one caller at a time, each within the limits of
    `query_settings`. `command` starts the worker.
    """

    def __init__(
        self,
        spark_settings: SparkSettings,
        query_settings: QuerySettings,
        work: Path,
        command: Sequence[str] = WORKER,
    ) -> None:
        self._config = WorkerConfig(spark_settings, query_settings, str(work))
        self._work, self._command = work, command
        self._seconds_max = query_settings.seconds_max
        self._worker: _Worker | None = None
        self._ended = False

    @property
    def alive(self) -> bool:
        """Whether the worker is running."""
        worker = self._worker  # read once, because another thread may close it
        return worker is not None and worker.alive

    def run(self, request: QueryRequest, stopping: Cancellation | None = None) -> QueryResult:
        """Run the query. `stopping` cancels it from another thread."""
        reply = self._request(request, stopping or Cancellation())
        if reply.result is None:
            raise EngineFailed("the ad-hoc query process returned no result")
        return reply.result

    def start(self) -> None:
        """Start the worker now, so that the first query need not wait for it."""
        self._ready_worker()

    def close(self) -> None:
        """Kill the worker, and with it a running query; the next query starts another."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()

    def end(self) -> None:
        """Close permanently: later queries are refused."""
        self._ended = True
        self.close()

    def _check_open(self) -> None:
        if self._ended:
            self.close()
            raise Unavailable("the project is shutting down")

    def _request(self, request: QueryRequest, stopping: Cancellation) -> WorkerReply:
        try:
            # Cancelled by killing the worker, like at the time limit.
            with stopping.by(self.close):
                worker = self._ready_worker()
                stopping.check()
                worker.send(request)
                return self._read(worker, self._seconds_max)
        except Unavailable:
            stopping.check()
            raise
        except queue.Empty:
            self.close()
            raise LimitReached(
                f"the query timed out after {self._seconds_max:g} seconds and was cancelled",
                hint="query fewer events, or raise the setting query.seconds_max.",
            ) from None

    def _ready_worker(self) -> _Worker:
        worker = self._worker
        if worker is not None and worker.alive:
            return worker
        self.close()
        self._check_open()
        self._worker = worker = _start(self._command, self._work)
        self._check_open()  # again, because `end` may have come before there was a worker to kill
        worker.send(self._config)
        try:
            self._read(worker, _START_SECONDS_MAX)
        except queue.Empty:
            self.close()
            raise Unavailable(
                f"the ad-hoc query process did not start within {_START_SECONDS_MAX:.0f} seconds",
                hint="repeat the query when the machine has less to do.",
            ) from None
        except HeadraceError:
            self.close()
            raise
        return worker

    def _read(self, worker: _Worker, seconds_max: float) -> WorkerReply:
        line = worker.lines.get(timeout=seconds_max)
        if not line:
            self.close()
            self._check_open()
            raise Unavailable(
                "the ad-hoc query process exited before it returned a result",
                detail="it usually ran out of memory.",
                hint="query fewer events, or raise the setting query.memory; the next query starts "
                "a new process.",
            )
        reply = msgspec.json.decode(line, type=WorkerReply)
        if reply.error is not None:
            raise _error_of(reply.error)
        return reply


def _start(command: Sequence[str], work: Path) -> _Worker:
    work.mkdir(parents=True, exist_ok=True)
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    with (work / "worker.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=os.environ | {"PYTHONPATH": path},
            start_new_session=True,  # its own process group, which can be killed as a whole
        )
    assert process.stdout is not None
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    reader = threading.Thread(target=_pump, args=(process.stdout, lines), daemon=True)
    reader.start()
    return _Worker(process, lines)


def _pump(pipe: IO[bytes], lines: queue.SimpleQueue[bytes]) -> None:
    with contextlib.suppress(ValueError, OSError):  # the pipe was closed by kill()
        for line in pipe:
            lines.put(line)
    lines.put(b"")


def _error_of(error: dict[str, str | None]) -> HeadraceError:
    """The worker's error as an exception of the same condition."""
    kind = getattr(errors, error.get("condition") or "", EngineFailed)
    message = error.get("message") or "the query failed"
    raised: HeadraceError = kind(
        message, detail=error.get("detail"), hint=error.get("hint"), origin=error.get("origin")
    )
    return raised
