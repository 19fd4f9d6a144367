"""What a pass of the compiler is given, and gives to the next: it is replaced, never changed.

Only two parts of it have a memory: Spark's analyser, to which passes make relations known, and the
mistakes that were noted. So the order of passes matters, and headrace/compile/passes.py has it.
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
from headrace.compile.resolve import Queries, Resolved
from headrace.core.mistakes import Mistakes
from headrace.core.schema import Schema
from headrace.define.definitions import StreamDefinition
from headrace.define.processors import ProcessorDefinition
from headrace.define.project import Project


@dataclass(frozen=True, slots=True)
class Context:
    """A project on its way to a plan."""

    project: Project  # with the definitions that watches stand for
    analyser: Analyser
    processors: Mapping[str, ProcessorDefinition]
    plan: Plan
    queries: Queries = field(default_factory=dict)  # each after what it reads
    schemas: Mapping[str, Schema] = field(default_factory=dict)  # of streams and tables
    joins: Mapping[str, StreamJoin] = field(default_factory=dict)  # by the name of their query
    mistakes: Mistakes = field(default_factory=Mistakes)

    def base(self, resolved: Resolved) -> StreamDefinition:
        """The declared stream at the bottom of a query; of joined ones the left."""
        return self.project.streams[base_streams(resolved, self.queries)[0]]

    def planned(self, **parts: Any) -> Context:
        """With other parts of the plan."""
        return replace(self, plan=msgspec.structs.replace(self.plan, **parts))

    def with_view(self, plan: ViewPlan) -> Context:
        return self.planned(views=(*self.plan.views, plan))

    def with_query(self, resolved: Resolved) -> Context:
        """With another form of a query."""
        return replace(self, queries={**self.queries, resolved.definition.name: resolved})
