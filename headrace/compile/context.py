"""The context that each pass of the compiler receives and returns. It is immutable.

Only two parts of it have state: Spark's analyser, in which passes register relations, and the
collected mistakes. So the order of passes in headrace/compile/passes.py matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from headrace.compile.analyser import Analyser
from headrace.compile.derive import base_streams
from headrace.compile.join import StreamJoin
from headrace.compile.plan import Plan, ViewPlan
from headrace.compile.resolve import Queries, ResolvedQuery
from headrace.core.mistakes import Mistakes
from headrace.core.schema import Schema
from headrace.define.definitions import StreamDefinition
from headrace.define.processors import ProcessorDefinition
from headrace.define.project import Project


@dataclass(frozen=True, slots=True)
class CompileContext:
    """A project that is being compiled to a plan."""

    project: Project  # with the definitions that watches expand to
    analyser: Analyser
    processors: Mapping[str, ProcessorDefinition]
    plan: Plan
    queries: Queries = field(default_factory=dict)  # each after what it reads
    schemas: Mapping[str, Schema] = field(default_factory=dict)  # of streams and tables
    joins: Mapping[str, StreamJoin] = field(default_factory=dict)  # by the name of their query
    mistakes: Mistakes = field(default_factory=Mistakes)

    def base(self, resolved: ResolvedQuery) -> StreamDefinition:
        """The declared stream that a query reads, also through derived ones; the left of a join."""
        return self.project.streams[base_streams(resolved, self.queries)[0]]

    def with_plan(self, **parts: Any) -> CompileContext:
        """With other parts of the plan."""
        return replace(self, plan=msgspec.structs.replace(self.plan, **parts))

    def with_view(self, plan: ViewPlan) -> CompileContext:
        return self.with_plan(views=(*self.plan.views, plan))

    def with_query(self, resolved: ResolvedQuery) -> CompileContext:
        """With another form of a query."""
        return replace(self, queries={**self.queries, resolved.definition.name: resolved})
