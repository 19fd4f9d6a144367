"""`headrace check`, `plan` and `explain`: the definitions of a project, without running it.

None of them changes anything. Errors that can be found without Spark are reported first, so that a
wrong option is reported at once and a JVM is started only if there are none.
tests/cli/test_planning.py reads the pages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from headrace.cli.failure import fields_of, lines_of
from headrace.cli.folder import load
from headrace.cli.report import Report, good, spinner
from headrace.client.formats import plural
from headrace.client.table import table
from headrace.compile import explain as explaining
from headrace.compile.computed import check_computed
from headrace.compile.destinations import check_destinations
from headrace.compile.passes import check_query
from headrace.compile.plan import Plan, RulePlan, SinkPlan, StreamPlan, ViewPlan
from headrace.compile.resolve import resolve
from headrace.compile.watches import errors_name_watches, expanded
from headrace.core.errors import BadDefinition, HeadraceError, Unavailable, UnknownName
from headrace.core.pattern import Pattern
from headrace.core.rule import hidden, shown_name
from headrace.core.subscription import emission
from headrace.core.time import duration_text
from headrace.define.definitions import TableDefinition
from headrace.define.project import Project, read_project
from headrace.ingest.connector import check_options
from headrace.pattern.ambiguity import count_ways
from headrace.serving.catalog import changes_of
from headrace.serving.store import Change

_STYLES = {
    "new": "green",
    "rebuild": "yellow",
    "changed": "yellow",
    "reread": "cyan",
    "removed": "red",
}


def compile_plan(project: Project) -> Plan:
    """The plan of a project, by a Spark session started for it."""
    from headrace.run.added_definitions import effective_project
    from headrace.run.compiling import compile_in_spark

    with spinner("compiling with Spark"):
        return compile_in_spark(effective_project(project))


# check


def check(folder: Path) -> Report:
    """Whether the project can run."""
    try:
        project, unread = read_project(folder)
    except Unavailable:
        raise
    except HeadraceError as error:
        return _checked({}, [error])
    if unread:
        return _checked({}, [*unread, *_readable_problems(project)])
    views = [query for query in project.queries.values() if query.kind == "view"]
    streams = len(project.streams) + len(project.queries) - len(views)
    counts = {"stream": streams, "table": len(project.tables), "view": len(views)}
    counts |= {"sink": len(project.sinks)} if project.sinks else {}
    counts |= {"rule": len(project.rules)} if project.rules else {}
    counts |= {"watch": len(project.watches)} if project.watches else {}
    plans: list[Plan] = []
    found = problems(project, lambda project: plans.append(compile_plan(project)))
    return _checked(counts, found, warnings(project, plans[0]) if plans else [])


def problems(project: Project, compile: Callable[[Project], object]) -> list[HeadraceError]:
    """The errors of a project; Spark is used only if none was found without it."""
    found = _apparent(project)
    last = None
    if not found:
        last = _error_of(partial(resolve_project, project)) or _error_of(partial(compile, project))
    return [*found, last, *last.others] if last else found


def warnings(project: Project, made: Plan) -> list[dict[str, str | None]]:
    """Warnings of a valid project: patterns whose search may exceed its limit."""
    found = {}
    for view in made.views:
        pattern = view.carry and view.carry.match and view.carry.match.pattern
        if not isinstance(pattern, Pattern) or count_ways(pattern) <= (
            pattern.steps_max or math.inf
        ):
            continue
        of = (q for q in project.queries.values() if q.match and q.match.node == pattern.node)
        query = next(of, None)
        name = query.name if query else shown_name(view.name)
        found[name] = fields_of(
            "Warning",
            f"pattern matching for '{name}' may exceed the limit of steps per key",
            detail=f"a key that needs more than {pattern.steps_max:,} steps (pattern.steps_max) "
            "is skipped: its events are stored, but its matches are not detected.",
            hint="give repeated variables mutually exclusive conditions that do not compare rows, "
            "or bound them with WITHIN.",
        ) | {"origin": str(query.query_origin) if query else None}
    return list(found.values())


def _readable_problems(project: Project) -> list[HeadraceError]:
    """The errors of the other statements, if some cannot be parsed."""
    # An unknown name may be defined by a statement that cannot be parsed.
    return [error for error in _apparent(project) if not isinstance(error, UnknownName)]


def _apparent(project: Project) -> list[HeadraceError]:
    """The errors of each definition by itself, without Spark."""
    steps: list[Callable[[], object]] = [
        *(partial(check_options, stream) for stream in project.streams.values()),
        *(partial(check_computed, stream) for stream in project.streams.values()),
        *(partial(_check_location, given, project.folder) for given in project.tables.values()),
        *(partial(check_destinations, project, sink) for sink in project.sinks.values()),
        *(partial(check_query, project, query) for query in project.queries.values()),
    ]
    return [error for step in steps if (error := _error_of(step))]


def _error_of(step: Callable[[], object]) -> HeadraceError | None:
    try:
        step()
    except Unavailable:
        raise  # not an error of the project
    except HeadraceError as error:
        return error
    return None


def _check_location(given: TableDefinition, folder: Path) -> None:
    if not (folder / given.location).exists():
        raise BadDefinition(
            f"table '{given.name}' has no file at {given.location}",
            hint="LOCATION is relative to the project's folder.",
            origin=given.origin,
        )


def resolve_project(project: Project) -> object:
    with errors_name_watches(project):
        return resolve(expanded(project))


def _checked(
    counts: dict[str, int],
    errors: list[HeadraceError],
    warned: Sequence[dict[str, str | None]] = (),
) -> Report:
    fields = [error.as_dict() for error in errors]
    totals = {f"{word}s": many for word, many in counts.items()}
    document = {"ok": not errors, **totals, "errors": fields, "warnings": list(warned)}
    if errors:
        return Report(document, [line for each in fields for line in lines_of(each)], 1)
    words = ", ".join(plural(many, word) for word, many in counts.items())
    lines = [line for each in warned for line in lines_of(each, "bold yellow")]
    return Report(document, [*lines, good("ok").append(f": {words}", style="default")])


# plan


def plan(folder: Path) -> Report:
    """What a run would change."""
    from headrace.run.compiling import deployed_plan

    project = load(folder)
    made = compile_plan(project)
    return plan_report(project, made, deployed_plan(project))


def plan_report(project: Project, made: Plan, deployed: Plan | None) -> Report:
    """The plan, compared with the deployed one."""
    changes = {change.name: change for change in changes_of(deployed, made)}
    streams = {stream.name: _stream_change(stream, deployed) for stream in made.streams}
    gone = [c for c in changes.values() if c.what == "removed" and not hidden(c.name)]
    document = {
        "project": made.name,
        "streams": [_stream_document(s, project, streams[s.name]) for s in made.streams],
        "derived": [{"name": each.name, "stream": each.stream} for each in made.shown_derived],
        "tables": [
            {"name": t.name, "format": t.format, "location": t.location} for t in made.shown_tables
        ],
        "views": [_view_document(view, changes[view.name]) for view in made.shown_views],
        "sinks": [_sink_document(sink) for sink in made.sinks],
        "rules": [_rule_document(rule) for rule in made.rules],
        "removed": [change.name for change in gone],
    }
    return Report(document, _planned_parts(document, made, gone))


def _stream_change(stream: StreamPlan, deployed: Plan | None) -> str:
    before = {each.name: each for each in deployed.streams} if deployed else {}
    if stream.name not in before:
        return "new"
    return "unchanged" if before[stream.name] == stream else "changed"


def _stream_document(stream: StreamPlan, project: Project, change: str) -> dict[str, Any]:
    mark = stream.watermark
    return {
        "name": stream.name,
        "source": project.streams[stream.name].source,
        "columns": {column.name: column.type for column in stream.columns},
        "partitions": stream.partitions,
        "watermark": f"{mark[0]} less {duration_text(mark[1])}" if mark else None,
        "change": change,
    }


def _view_document(view: ViewPlan, change: Change) -> dict[str, Any]:
    return {
        "name": view.name,
        "kind": view.kind,
        "reads": list(view.reads or (view.stream, *view.tables)),
        "fingerprint": view.fingerprint,
        "change": change.what,
        "reason": change.detail,
    }


def _sink_document(sink: SinkPlan) -> dict[str, Any]:
    return {
        "name": sink.name,
        "view": sink.subscription.view,
        "into": sink.destination.name,
        "guarantee": sink.guarantee.value,
        "emit": emission(sink.subscription),
    }


def _rule_document(rule: RulePlan) -> dict[str, str]:
    return {
        "name": rule.name,
        "severity": rule.severity,
        "reads": ", ".join(rule.streams),
        "notifies": ", ".join(destination.name for destination in rule.destinations),
    }


def _planned_parts(
    document: dict[str, Any], made: Plan, gone: list[Change]
) -> list[RenderableType]:
    streams = [
        [s["name"], s["source"], s["watermark"] or "none", _change(s["change"])]
        for s in document["streams"]
    ]
    streams += [
        [each.name, f"from {each.stream}", "as its source", Text("")] for each in made.shown_derived
    ]
    views = [
        [v["name"], v["kind"], ", ".join(v["reads"]), _change(v["change"]), v["reason"]]
        for v in document["views"]
    ] + [[change.name, "", "", _change(change.what), change.detail] for change in gone]
    parts: list[RenderableType] = [table("stream", "source", "watermark", "change", rows=streams)]
    if made.shown_tables:
        rows = [[each.name, each.format, each.location] for each in made.shown_tables]
        parts += ["", table("table", "format", "location", rows=rows)]
    parts += ["", table("view", "kind", "reads", "change", "reason", rows=views)]
    if made.rules:
        rules = [list(rule.values()) for rule in document["rules"]]
        parts += ["", table("rule", "severity", "reads", "notifies", rows=rules)]
    if made.sinks:
        sinks = [list(sink.values()) for sink in document["sinks"]]
        parts += ["", table("sink", "view", "into", "guarantee", "emit", rows=sinks)]
    return parts


def _change(what: str) -> Text:
    return Text(what, style=_STYLES.get(what, "dim"))


# explain


def explain(folder: Path, view: str) -> Report:
    """How a view or a derived stream is computed."""
    project = load(folder)
    known = [query.name for query in project.queries.values()]
    if view.lower() not in {name.lower() for name in known}:
        raise explaining.unknown_view(view, known)  # without waiting for Spark
    explanation = explaining.explain(compile_plan(project), view)
    return Report(explanation, [Text(str(explanation))])
