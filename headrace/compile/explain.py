"""The explanation of a view: how it is maintained, in words and SQL.

It is made from the plan, so it describes what is run. A mergeable view has four sections: map and
partial are run by both layers, merge and finish when it is read. A view over views has one section,
read, and a derived stream one, derive.
tests/cli/test_explain.py reads whole explanations.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from headrace.compile.plan import (
    CarryPlan,
    DerivedPlan,
    KeyPlan,
    PartialPlan,
    Plan,
    ViewKind,
    ViewPlan,
    digest,
)
from headrace.core.aggregate import Merge, error_text
from headrace.core.errors import NotFound, did_you_mean
from headrace.core.pattern import Threshold
from headrace.core.subscription import emission
from headrace.core.time import duration_text

_MERGES = {
    Merge.SUM: "the two are added",
    Merge.MIN: "the smaller is kept",
    Merge.MAX: "the larger is kept",
    Merge.MOMENTS: "counts, means and squared distances are combined",
    Merge.MAX_BY: "the value with the larger order is kept; of equals, the later in the log",
    Merge.MIN_BY: "the value with the smaller order is kept; of equals, the later in the log",
    Merge.COUNTED: "the number is true while batch alone has counted",
    Merge.HLL: "the sketches are united, so a value seen on both sides counts once",
    Merge.KLL: "the sketches are united; ranks stay within their error",
    Merge.TOP_K: "the counters are added, and the rarest give way",
    Merge.COUNT_MIN: "the counters are added",
    Merge.COLLECT_LIST: "the first in the order of the log are kept, up to the limit",
    Merge.COLLECT_SET: "the smallest different values are kept, up to the limit",
    Merge.IDS: "the sets are united, so a value seen on both sides counts once",
    Merge.DECIMAL_SUM: "the two are added, exactly",
    Merge.PAIR: "counts, means, products and squares of distances are combined",
    Merge.SHAPE: "counts, means and powers of distances are combined",
}
_ESTIMATES = {
    "speed": "counted exactly by batch, and by a sketch for events that only speed has seen",
    "always": "counted by a sketch in both layers",
}
_KINDS = {
    ViewKind.MERGEABLE: "batch and speed keep partials of it, which are merged when it is read",
    ViewKind.CARRIED: "a fold takes the events of each key in order, with its state; batch and "
    "speed keep partials of what it makes, which are merged when it is read",
    ViewKind.READ: "derived from the answers of other views when it is read; "
    "nothing is kept for it",
    "stream": "it is written into the views that read it; nothing is kept for it",
}


class Section(msgspec.Struct, frozen=True):
    """One step: what it does, and its SQL if it has any."""

    name: str
    words: tuple[str, ...]
    sql: str | None = None


class Estimate(msgspec.Struct, frozen=True):
    """A column that may be inexact, why, and its error: a share of the value, rank or events."""

    column: str
    why: str
    error: float
    of: str = "value"


class QueryExplanation(msgspec.Struct, frozen=True):
    """How a view is maintained."""

    view: str
    kind: str
    means: str
    origin: str
    fingerprint: str
    recompute: str | None
    sections: tuple[Section, ...]
    estimates: tuple[Estimate, ...]

    def __str__(self) -> str:
        """The explanation as a page of text."""
        origin = f" ({self.origin})" if self.origin else ""
        kind = "a derived stream" if self.kind == "stream" else self.kind
        head = [
            f"{self.view}{origin} is {kind}: {self.means}.",
            f"fingerprint {self.fingerprint}"
            + (f", of its partials {self.recompute}" if self.recompute else ""),
        ]
        sections = [line for section in self.sections for line in _lines(section)]
        exact = [] if self.kind == "stream" else ["", *_estimate_lines(self.estimates)]
        return "\n".join([*head, *sections, *exact])


def explain(plan: Plan, view: str) -> QueryExplanation:
    """The explanation of a view or derived stream; NotFound if the plan has none of that name."""
    found = plan.view(view)
    derived = next((each for each in plan.derived if each.name.lower() == view.lower()), None)
    if derived is not None:
        return _derived(derived)
    if found is None:
        names = [v.name for v in plan.views] + [d.name for d in plan.derived]
        raise unknown_view(view, names)
    kept = found.kept
    return QueryExplanation(
        found.name,
        found.kind,
        _KINDS[found.kind],
        found.origin,
        found.fingerprint,
        found.recompute if kept else None,
        (*(_kept_sections(found) if kept else (_read_section(found),)), *_sinks(plan, found)),
        estimates_of(found),
    )


def estimates_of(view: ViewPlan) -> tuple[Estimate, ...]:
    """The columns of a view that may be inexact."""
    return tuple(
        Estimate(output.name, _ESTIMATES[said.when], said.error, said.of)
        for output in view.outputs
        if (said := output.estimate)
    )


def unknown_view(view: str, known: list[str]) -> NotFound:
    """The error for a view that is not there."""
    hint = did_you_mean(view, known, f"available: {', '.join(known) or 'none'}.")
    return NotFound(f"there is no view '{view}'", hint=hint)


def _derived(stream: DerivedPlan) -> QueryExplanation:
    tables = f" (joined with {_listed(stream.tables)})" if stream.tables else ""
    words = f"each event of '{stream.stream}'{tables} gives its events; no event needs another"
    if stream.carry:
        words = f"the events of '{stream.stream}' are folded in order, key by key, into its events"
    section = Section("derive", (words,), stream.sql)
    return QueryExplanation(
        stream.name, "stream", _KINDS["stream"], "", digest(stream), None, (section,), ()
    )


def _kept_sections(view: ViewPlan) -> tuple[Section, ...]:
    return (
        Section("map", (_map_words(view),), view.map_sql),
        Section("partial", tuple(_partial_words(view)), _partial_sql(view)),
        Section("merge", tuple(_merge_words(view.partials)) or ("a key is a key on both sides",)),
        Section("finish", tuple(_finish_words(view)), view.finish_sql),
    )


def _map_words(view: ViewPlan) -> str:
    tables = f" (joined with {_listed(view.tables)})" if view.tables else ""
    if view.join:
        span = f"{_signed(view.join.lower_us)} to {_signed(view.join.upper_us)}"
        return (
            f"each row of '{view.join.left}' joined with '{view.join.right}'{tables} that is new "
            f"gives its key values and what is aggregated; the right event is {span} after the left"
        )
    if view.carry:
        return (
            f"the events of each key of stream '{view.stream}'{tables} are taken in their order, "
            f"with {_carry_words(view.carry)}; what comes of it gives the key values and what is "
            "aggregated"
        )
    return (
        f"each event of stream '{view.stream}'{tables} gives its key values and what is "
        "aggregated; no event needs to know another"
    )


def _carry_words(carry: CarryPlan) -> str:
    """What is carried from event to event."""
    if carry.processor:
        return f"the state of processor '{carry.processor.name}'"
    if carry.match:
        kind = "threshold" if isinstance(carry.match.pattern, Threshold) else "pattern"
        return f"the open matches of a {kind}"
    return f"the state of {_listed(step.step for step in carry.steps)}"


def _signed(us: int) -> str:
    return ("-" if us < 0 else "") + (duration_text(abs(us)) if us else "0s")


def _partial_words(view: ViewPlan) -> list[str]:
    by = f"by {_listed(map(_key_words, view.keys))}" if view.keys else "as one group"
    words = [f"events are grouped {by}; batch and speed run this over different events"]
    counted = [partial.columns[0] for partial in view.counted]
    if counted:
        words.append(
            f"batch also keeps the values behind {_listed(counted)}, to count them exactly"
        )
    if view.has_lateness:
        words.append("each window also counts its events and how late they were")
    if view.kernel.fold:
        words.append(
            "builds fold its events vectorised, in DuckDB within Spark's tasks, and epochs in "
            "Spark SQL; both are compared"
        )
    elif view.kernel.sql:
        words.append(
            "it is computed vectorised, in DuckDB within Spark's tasks, and compared with Spark SQL"
        )
    elif view.kernel.refused:
        words.append(f"it is computed in Spark SQL: {view.kernel.refused}")
    return words


def _partial_sql(view: ViewPlan) -> str:
    # The map step is shown above, and would only repeat here.
    mapped = f"({view.map_sql})"
    return view.partial_sql.replace(f"{mapped} AS mapped", "mapped").replace(mapped, "mapped")


def _key_words(key: KeyPlan) -> str:
    return f"{key.name} ({key.window.words})" if key.window else key.name


def _merge_words(partials: Iterable[PartialPlan]) -> list[str]:
    return [f"{', '.join(p.columns)} ({p.merge}): {_MERGES[Merge(p.merge)]}" for p in partials]


def _finish_words(view: ViewPlan) -> list[str]:
    put_together = view.windowed if view.regroups else None
    words = [f"when read, {put_together[1].reading}"] if put_together else []
    words += ["when read, the merged partials become the values of the aggregates"]
    words += [f"{call.column} ({call.name}): {call.finish}" for call in view.calls]
    words += [f"groups are kept where {view.having}"] if view.having else []
    words += [f"rows are ordered by {_listed(view.order)}"] if view.order else []
    words += [f"the first {view.limit} rows are the answer"] if view.limit is not None else []
    return words


def _read_section(view: ViewPlan) -> Section:
    words = f"computed when read, from the answers of {_listed(view.reads)}"
    words += f", joined with {_listed(view.tables)}" if view.tables else ""
    return Section("read", (words,), view.read_sql)


def _sinks(plan: Plan, view: ViewPlan) -> tuple[Section, ...]:
    words = tuple(
        f"{sink.name} sends it to {sink.destination.name}, "
        f"{sink.guarantee.value.replace('_', ' ')}: {emission(sink.subscription)}"
        for sink in plan.sinks
        if sink.shape.view == view.name
    )
    return (Section("sinks", words),) if words else ()


def _listed(words: Iterable[str]) -> str:
    *first, last = [*words] or ["nothing"]
    return f"{', '.join(first)} and {last}" if first else last


def _lines(section: Section) -> list[str]:
    sql = [f"    {section.sql}"] if section.sql else []
    return ["", section.name, *(f"  {word}" for word in section.words), *sql]


def _estimate_lines(estimates: tuple[Estimate, ...]) -> list[str]:
    if not estimates:
        return ["every column is exact"]
    return [
        f"{e.column} may be an estimate ({error_text(e.error, e.of)}): {e.why}" for e in estimates
    ]
