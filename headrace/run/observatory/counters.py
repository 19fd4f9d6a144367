"""The number of events that each node has processed. Cheap, since it is read every two seconds."""

from __future__ import annotations

from headrace.compile.plan import Plan
from headrace.core.errors import NotFound
from headrace.run.observatory.observed_project import ObservedProject
from headrace.serving.alerts import count_alerts_by_rule
from headrace.serving.progress import count_processed
from headrace.serving.sinks import sequences


def read_counters(service: ObservedProject) -> dict[str, int]:
    """Counters by node id; empty before a plan is deployed."""
    plan = service.store.deployed()
    if plan is None:
        return {}
    return _files(service, plan) | _stored(service)


def _files(service: ObservedProject, plan: Plan) -> dict[str, int]:
    found = {}
    for stream in plan.streams:
        try:
            end = sum(service.log_reader(stream).end().offsets)
        except NotFound:
            continue
        found[f"source:{stream.name}"] = found[f"log:{stream.name}"] = end
        version = service.master(stream).newest_or_none()
        if version is not None:
            found[f"master:{stream.name}"] = sum(version.position.offsets)
    return found


def _stored(service: ObservedProject) -> dict[str, int]:
    """The counters of the store, in one transaction."""
    with service.store.read() as db:
        counts = {
            "speed": count_processed(db),
            "sink": sequences(db),
            "rule": count_alerts_by_rule(db),
        }
    return {f"{kind}:{name}": n for kind, found in counts.items() for name, n in found.items()}
