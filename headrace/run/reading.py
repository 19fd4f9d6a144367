"""What a text reads, as objects that a caller may or may not read.

A name that stands for nothing is treated as one that the caller may not read, unless they may read
all: so a refusal does not say whether it exists. tests/run/test_reading.py checks each.
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
    """Forbidden if the caller may not read one of these."""
    for name in sorted(names):
        caller.check(Operation.READ, object_named(plan, name, caller), f"'{name}'")


def reads(caller: Caller, plan: Plan | None, name: str) -> bool:
    return caller.allows(Operation.READ, object_named(plan, name, caller))


def object_named(plan: Plan | None, name: str, caller: Caller) -> Object:
    """What a name stands for; the whole job if nothing has it."""
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
    """Whoever defines a rule or watch must be allowed to, and to read what it reads and to send to
    the streams that it notifies: its alerts would tell, and send, in their place.
    """
    for said in definitions:
        caller.check(Operation.DEFINE, object_of("rule", said.name))
        for query in embedded_queries(said):
            check_reads(caller, plan, query.relations)
        for stream in (one.target for one in said.destinations if one.feeds):
            caller.check(Operation.SEND, object_of("stream", stream))
