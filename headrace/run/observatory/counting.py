"""How many events have come to each place so far; cheap, because it is asked every few seconds."""

from __future__ import annotations

from headrace.compile.plan import Plan
from headrace.core.errors import NotFound
from headrace.run.observatory.subject import Subject
from headrace.serving.ledger import count_by_rule
from headrace.serving.progress import taken
from headrace.serving.sinks import sequences


def count(subject: Subject) -> dict[str, int]:
    """Counters by the ids of nodes; of nothing before something is deployed."""
    plan = subject.store.deployed()
    if plan is None:
        return {}
    return _files(subject, plan) | _stored(subject)


def _files(subject: Subject, plan: Plan) -> dict[str, int]:
    found = {}
    for stream in plan.streams:
        try:
            end = sum(subject.log_reader(stream).end().offsets)
        except NotFound:
            continue
        found[f"source:{stream.name}"] = found[f"log:{stream.name}"] = end
        version = subject.master(stream).newest_or_none()
        if version is not None:
            found[f"master:{stream.name}"] = sum(version.position.offsets)
    return found


def _stored(subject: Subject) -> dict[str, int]:
    """One transaction for all that the store counts."""
    with subject.store.read() as db:
        counts = {"speed": taken(db), "sink": sequences(db), "rule": count_by_rule(db)}
    return {f"{kind}:{name}": n for kind, found in counts.items() for name, n in found.items()}
