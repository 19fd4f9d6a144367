"""The project's lineage as events of OpenLineage: which datasets a job reads and writes.

Streams, tables and views are datasets of the namespace `headrace://project`. A deployed plan has an
event for each view with its inputs (OTHER, since nothing has run yet); a generation is a run of the
job `stream.generation`, with START and COMPLETE or FAIL. These are pure functions of the plan;
headrace/run/lineage_publisher.py sends the events.
tests/run/test_openlineage.py checks the required fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from headrace.compile.plan import WINDOW, Plan, ViewPlan
from headrace.core.time import iso
from headrace.core.version import __version__

PRODUCER = f"urn:headrace:{__version__}"
_SPEC = "https://openlineage.io/spec"
SCHEMA_URL = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS = {
    "schema": "1-1-1/SchemaDatasetFacet",
    "sql": "1-0-1/SQLJobFacet",
    "jobType": "2-0-3/JobTypeJobFacet",
    "errorMessage": "1-0-1/ErrorMessageRunFacet",
    "processing_engine": "1-1-1/ProcessingEngineRunFacet",
}
Event = dict[str, Any]


def plan_events(plan: Plan, at_us: int, run_ids: Iterator[str]) -> Iterator[Event]:
    """An event for each view, with its inputs."""
    for view in plan.shown_views:
        job = _job(plan, view.name, "STREAMING", "VIEW", view.definition or view.read_sql)
        inputs = [_dataset(plan, name) for name in _inputs(plan, view)]
        yield _event(plan, "OTHER", at_us, next(run_ids), job, inputs, [_dataset(plan, view.name)])


def generation_event(
    plan: Plan, stream: str, kind: str, at_us: int, run_id: str, problem: str = ""
) -> Event:
    """A build of batch was started (START), promoted (COMPLETE) or failed (FAIL)."""
    views = [view for view in plan.shown_views if view.stream == stream]
    names = dict.fromkeys(name for view in views for name in _inputs(plan, view))
    job = _job(plan, f"{stream}.generation", "BATCH", "GENERATION")
    inputs = [_dataset(plan, name) for name in names]
    outputs = [_dataset(plan, view.name) for view in views]
    event = _event(plan, kind, at_us, run_id, job, inputs, outputs)
    if problem:
        event["run"]["facets"] |= _facet("errorMessage", message=problem, programmingLanguage="SQL")
    return event


def _inputs(plan: Plan, view: ViewPlan) -> Sequence[str]:
    """The streams and tables of a materialized view, or the views that a view reads."""
    streams = [s.name for s in plan.streams if s.name in view.streams]
    shown = {table.name for table in plan.shown_tables}
    return [*streams, *(name for name in view.tables if name in shown), *view.reads]


def _event(
    plan: Plan,
    kind: str,
    at_us: int,
    run_id: str,
    job: Event,
    inputs: list[Event],
    outputs: list[Event],
) -> Event:
    engine = _facet("processing_engine", name="headrace", version=__version__)
    return {
        "eventType": kind,
        "eventTime": iso(at_us),
        "producer": PRODUCER,
        "schemaURL": SCHEMA_URL,
        "run": {"runId": run_id, "facets": engine},
        "job": job,
        "inputs": inputs,
        "outputs": outputs,
    }


def _job(plan: Plan, name: str, processing: str, kind: str, sql: str = "") -> Event:
    facets = _facet("jobType", processingType=processing, integration="HEADRACE", jobType=kind)
    if sql:
        facets |= _facet("sql", query=sql, dialect="spark")
    return {"namespace": namespace(plan), "name": name, "facets": facets}


def namespace(plan: Plan) -> str:
    return f"headrace://{plan.name}"


def _dataset(plan: Plan, name: str) -> Event:
    fields = [{"name": column, "type": type} for column, type in _columns(plan, name)]
    facets = _facet("schema", fields=fields) if fields else {}
    return {"namespace": namespace(plan), "name": name, "facets": facets}


def _columns(plan: Plan, name: str) -> list[tuple[str, str]]:
    """The columns of a stream or view; a table has none here."""
    for stream in plan.streams:
        if stream.name == name:
            return [(column.name, column.type) for column in stream.columns]
    view = plan.view(name)
    window = "STRUCT<start: TIMESTAMP, end: TIMESTAMP>"
    outputs = view.outputs if view else ()
    return [(out.name, window if out.type == WINDOW else out.type) for out in outputs]


def _facet(name: str, /, **fields: Any) -> Event:
    path = _FACETS[name]
    url = f"{_SPEC}/facets/{path}.json#/$defs/{path.partition('/')[2]}"
    return {name: {"_producer": PRODUCER, "_schemaURL": url, **fields}}
