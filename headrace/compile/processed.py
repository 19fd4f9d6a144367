"""From a processor's call to its plan: what it reads, what it makes, and the stream's rows of that.

tests/plans/error_spark_processor_*.sql hold what is refused; tests/transcripts/processor_*.yaml say
what it means.
"""

from __future__ import annotations

from sqlglot import exp

from headrace.compile.carry import Carried, EventOrder, carried_rows
from headrace.compile.keyed import known_keys
from headrace.compile.lower import Analyse, select_of
from headrace.compile.plan import CarryPlan, ProcessorPlan
from headrace.compile.resolve import Resolved
from headrace.core.event import CUT, HIDDEN, TIME
from headrace.define.dialect import sql_of
from headrace.define.processors import ProcessorDefinition


def processed_stream(
    resolved: Resolved,
    source: exp.Select,
    time: str | None,
    name: str,
    definition: ProcessorDefinition,
    analyse: Analyse,
) -> Carried:
    """A stream that a processor makes, cut in the same three."""
    origin, call = resolved.definition.query_origin, resolved.definition.processor
    assert call is not None
    columns = [n for n, _ in analyse(sql_of(source), origin) if not n.startswith("_")]
    keys, alias = known_keys(resolved, call.keys, columns), resolved.stream_alias
    moment = f"unix_micros({alias}.{time})" if time else "0"
    order = EventOrder(tuple(f"{alias}.{key}" for key in keys), moment, alias)
    items = [f"{alias}.{column} AS {column}" for column in (*HIDDEN, *columns)]
    sql = select_of(source, [*order.items(), *items], [f"{TIME} IS NOT NULL"])
    outputs = tuple((column, type.spark) for column, type in definition.outputs)
    plan = CarryPlan(name, sql, processor=ProcessorPlan(call.name, tuple(columns), outputs))
    passed = [*(f"`{column}`" for column, _ in outputs), *HIDDEN, CUT]
    return carried_rows(plan, passed, analyse, origin)
