"""Who is observed: a project whose files are at hand, and the signs of its life if it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from headrace.api.resources.view_detail import RebuildProgress
from headrace.api.service import ProjectStatus
from headrace.compile.plan import Plan, StreamPlan
from headrace.core.position import PositionRange
from headrace.core.problems import Problem
from headrace.define.functions import FunctionDefinition
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.log.protocol import LogReader
from headrace.master.table import MasterTable
from headrace.run.observatory.disk import Growth
from headrace.run.observatory.graph import LastReads
from headrace.run.observatory.samples import Samples
from headrace.run.questions import Questions
from headrace.run.rulebook import StoreRulebook
from headrace.run.watchbook import StoreWatchbook
from headrace.serving.sqlite_store import SqliteStore


@dataclass(frozen=True, slots=True)
class Signs:
    """What only a running process knows; of a stopped project there is nothing."""

    running: bool = False
    started_at_us: int | None = None
    spark_version: str | None = None
    jvm_pid: int | None = None
    problems: Sequence[Problem] = ()
    # For a flow: the milliseconds that its newest epochs spent in each phase.
    phases: Callable[[str], dict[PositionRange, dict[str, int]]] = lambda flow: {}
    # For a flow and a view of it: the rebuild that could be, waits or runs.
    rebuild: Callable[[str, str], RebuildProgress | None] = lambda flow, view: None


@dataclass(frozen=True, slots=True)
class ObservatoryCache:
    """What is kept between two questions: samples of counters, for rates, and how the disk grows,
    both only where the project runs; and what its definitions read.
    """

    samples: Samples = field(default_factory=Samples)
    growth: Growth | None = None
    reads: LastReads = field(default_factory=LastReads)


class Subject(Protocol):
    project: Project
    store: SqliteStore
    layout: Layout
    questions: Questions
    memory: ObservatoryCache
    rule_service: StoreRulebook
    watch_service: StoreWatchbook

    def status(self) -> ProjectStatus: ...

    def signs(self) -> Signs: ...

    def functions(self) -> tuple[FunctionDefinition, ...]:
        """The functions that the project gives itself."""

    def deployed(self) -> Plan: ...

    def stream_plan(self, name: str) -> StreamPlan: ...

    def master(self, stream: StreamPlan) -> MasterTable: ...

    def log_reader(self, stream: StreamPlan) -> LogReader: ...
