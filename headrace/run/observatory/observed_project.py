"""The project that handlers read from, and what is known of its process if it is running."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from headrace.api.resources.status import ProjectStatus
from headrace.api.resources.view_detail import RebuildProgress
from headrace.compile.plan import Plan, StreamPlan
from headrace.core.position import PositionRange
from headrace.core.problems import Problem
from headrace.define.functions import FunctionDefinition
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.log.protocol import LogReader
from headrace.master.table import MasterTable
from headrace.run.observatory.disk import DiskGrowth
from headrace.run.observatory.graph import ReadsCache
from headrace.run.observatory.samples import Samples
from headrace.run.query_service import QueryService
from headrace.run.rule_service import LocalRuleService
from headrace.run.watch_service import LocalWatchService
from headrace.serving.answer import Answer
from headrace.serving.database_store import DatabaseStore
from headrace.serving.late import LateAnswer

AnyAnswer = TypeVar("AnyAnswer", Answer, LateAnswer)


@dataclass(frozen=True, slots=True)
class RuntimeInfo:
    """What only a running process knows; the defaults are those of a stopped project."""

    running: bool = False
    started_at_us: int | None = None
    spark_version: str | None = None
    jvm_pid: int | None = None
    problems: Sequence[Problem] = ()
    # For a flow: the milliseconds that its newest epochs spent in each phase.
    phases: Callable[[str], dict[PositionRange, dict[str, int]]] = lambda flow: {}
    # For a flow and a view of it: the progress of a rebuild.
    rebuild: Callable[[str, str], RebuildProgress | None] = lambda flow, view: None


@dataclass(frozen=True, slots=True)
class ObservatoryCache:
    """What is cached between requests: samples of counters and growth of the disk, which only a
    running project has, and what the definitions read.
    """

    samples: Samples = field(default_factory=Samples)
    growth: DiskGrowth | None = None
    reads: ReadsCache = field(default_factory=ReadsCache)


class ObservedProject(Protocol):
    project: Project
    store: DatabaseStore
    layout: Layout
    query_service: QueryService
    cache: ObservatoryCache
    rule_service: LocalRuleService
    watch_service: LocalWatchService

    def status(self) -> ProjectStatus: ...

    def runtime_info(self) -> RuntimeInfo: ...

    def functions(self) -> tuple[FunctionDefinition, ...]:
        """The functions that the project defines."""

    def with_behind(self, answer: AnyAnswer) -> AnyAnswer:
        """The answer with the number of events of each stream that are not yet in it."""

    def deployed(self) -> Plan: ...

    def stream_plan(self, name: str) -> StreamPlan: ...

    def master(self, stream: StreamPlan) -> MasterTable: ...

    def log_reader(self, stream: StreamPlan) -> LogReader: ...
