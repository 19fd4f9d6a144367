"""Where a query has a fold below it: a carried stream, or a window in the order of events.

Each reader of a carried stream has a fold of its own, so that its state goes with its rows. There
is one fold below a query, over one stream. tests/plans/error_spark_over_*.sql hold what is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from headrace.compile.analyser import Analyser
from headrace.compile.carry import Carried, carried_stream, is_carried, numbered
from headrace.compile.derive import NOTHING, base_stream, base_streams, inlined, streams_below
from headrace.compile.lower import Fold
from headrace.compile.matched import matched_stream
from headrace.compile.processed import processed_stream
from headrace.compile.resolve import Resolved
from headrace.compile.thresholds import threshold_stream
from headrace.core.errors import UnknownName, Unsupported
from headrace.define.processors import ProcessorDefinition
from headrace.define.project import Project


class Folds:
    """Makes the folds of a project's queries."""

    def __init__(
        self,
        project: Project,
        analyser: Analyser,
        ordered: dict[str, Resolved],
        processors: Mapping[str, ProcessorDefinition],
    ) -> None:
        self.project, self.analyser = project, analyser
        self.ordered, self.processors = ordered, processors

    def stream(self, resolved: Resolved, reader: str) -> Carried:
        """A carried stream as `reader` reads it."""
        if below := self._carried_below(resolved):
            raise Unsupported(
                f"stream '{resolved.definition.name}' carries what stream "
                f"'{below[0].definition.name}' has carried already",
                hint="have all running values in one stream.",
                origin=resolved.definition.query_origin,
            )
        self.refuse_joined(resolved)
        time, source = self._time(resolved), inlined(resolved, self.ordered)
        name, analyse = f"_carried_{reader}", self.analyser.analyse
        if resolved.definition.processor:
            processor = self._processor(resolved)
            made = processed_stream(resolved, source, time, name, processor, analyse)
        elif resolved.definition.match:
            steps_max = self.project.settings.pattern.steps_max
            made = matched_stream(resolved, source, time, name, analyse, steps_max=steps_max)
        elif resolved.definition.threshold:
            made = threshold_stream(resolved, source, time, name, analyse)
        else:
            made = carried_stream(resolved, source, time, name, analyse)
        self.analyser.relation(made.plan.name, made.ddl)
        return made

    def below(self, resolved: Resolved, reader: str) -> Carried | None:
        """The carried stream that a query reads, directly or through others."""
        below = self._carried_below(resolved)
        return self.stream(below[0], reader) if below else None

    def written(self, resolved: Resolved, carried: Carried | None) -> exp.Select:
        """The query with all streams below written out, down to the fold if there is one."""
        below = self._carried_below(resolved)
        known = {below[0].definition.name: carried.select} if carried and below else NOTHING
        return inlined(resolved, self.ordered, written=known)

    def numbered(self, resolved: Resolved) -> Fold:
        """The fold of a view with a window that needs its events in order."""
        name = f"_carried_{resolved.definition.name}"
        return numbered(name, self._time(resolved), resolved.stream_alias)

    def refuse_joined(self, resolved: Resolved) -> None:
        """Events of two streams have no order between them."""
        if len(base_streams(resolved, self.ordered)) > 1:
            raise Unsupported(
                f"'{resolved.definition.name}' needs the events of joined streams in order",
                hint="running values and processors take one stream; join what they make.",
                origin=resolved.definition.query_origin,
            )

    def _carried_below(self, resolved: Resolved) -> list[Resolved]:
        return [stream for stream in streams_below(resolved, self.ordered) if is_carried(stream)]

    def _time(self, resolved: Resolved) -> str | None:
        mark = self.project.streams[base_stream(resolved, self.ordered)].watermark
        return mark.column if mark else None

    def _processor(self, resolved: Resolved) -> ProcessorDefinition:
        call = resolved.definition.processor
        assert call is not None
        if found := self.processors.get(call.name.lower()):
            return found
        raise UnknownName(
            f"stream '{resolved.definition.name}' calls the processor '{call.name}', "
            "which is not defined",
            hint="processors are classes of functions.py with @processor(…).",
            origin=resolved.definition.query_origin,
        )
