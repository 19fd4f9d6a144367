"""Checks that a caller may read the relations of a query, a rule or a watch.

An unknown name is treated like a relation that the caller may not read, unless the caller may read
the whole job, so that an error does not reveal whether a name exists.
tests/run/test_read_permission.py checks each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from headrace.access.caller import Caller
from headrace.access.object import Object, object_of
from headrace.access.operation import Operation
from headrace.compile.plan import Plan
from headrace.define.definitions import RuleDefinition, WatchDefinition
from headrace.define.embedded import embedded_queries


def check_reads(caller: Caller, plan: Plan | None, names: Iterable[str]) -> None:
    """Raise Forbidden if the caller may not read one of these names."""
    for name in sorted(names):
        caller.check(Operation.READ, object_named(plan, name, caller), f"'{name}'")


def can_read(caller: Caller, plan: Plan | None, name: str) -> bool:
    return caller.allows(Operation.READ, object_named(plan, name, caller))


def object_named(plan: Plan | None, name: str, caller: Caller) -> Object:
    """The object of this name; the whole job if the name is unknown."""
    for kind, names in _names(plan).items():
        if name.lower() in names:
            return object_of(kind, name)
    return caller.whole_job


def _names(plan: Plan | None) -> dict[str, set[str]]:
    if plan is None:
        return {}
    sources = {stream.name.lower() for stream in plan.streams}
    return {
        "view": {view.name.lower() for view in plan.views},
        "stream": sources | {derived.name.lower() for derived in plan.derived},
        "table": {table.name.lower() for table in plan.tables},
    }


def check_definitions(
    caller: Caller,
    plan: Plan | None,
    definitions: Collection[RuleDefinition] | Collection[WatchDefinition],
) -> None:
    """The caller must be allowed to define rules, to read what each definition reads, and to send
    to the streams that it notifies, because its alerts contain rows and are sent to the streams.
    """
    for definition in definitions:
        caller.check(Operation.DEFINE, object_of("rule", definition.name))
        for query in embedded_queries(definition):
            check_reads(caller, plan, query.relations)
        for stream in (one.target for one in definition.destinations if one.feeds):
            caller.check(Operation.SEND, object_of("stream", stream))
