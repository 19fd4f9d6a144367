"""Who is observed: a project whose files are at hand, and the signs of its life if it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from headrace.api.observed.about import Rebuild
from headrace.api.service import Status
from headrace.compile.plan import Plan, StreamPlan
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.log.protocol import LogReader
from headrace.master.table import MasterTable
from headrace.run.questions import Questions
from headrace.serving.sqlite_store import SqliteStore


@dataclass(frozen=True, slots=True)
class Signs:
    """What only a running process knows; of a stopped project there is nothing."""

    running: bool = False
    started_at_us: int | None = None
    spark_version: str | None = None
    jvm_pid: int | None = None
    problems: Mapping[str, str] = field(default_factory=dict)
    # For a stream: what Spark says of its newest micro-batches.
    progress: Callable[[str], list[Any]] = lambda stream: []
    # For a flow and a view of it: the rebuild that could be, waits or runs.
    rebuild: Callable[[str, str], Rebuild | None] = lambda flow, view: None


class Subject(Protocol):
    project: Project
    store: SqliteStore
    layout: Layout
    questions: Questions

    def status(self) -> Status: ...

    def signs(self) -> Signs: ...

    def deployed(self) -> Plan: ...

    def stream_plan(self, name: str) -> StreamPlan: ...

    def master(self, stream: StreamPlan) -> MasterTable: ...

    def log_reader(self, stream: StreamPlan) -> LogReader: ...
