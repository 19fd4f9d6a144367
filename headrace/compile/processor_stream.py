"""Compiles a stream that calls a processor.

tests/plans/error_spark_processor_*.sql have what is refused; tests/transcripts/processor_*.yaml
define the semantics.
"""

from __future__ import annotations

from sqlglot import exp

from headrace.compile.carry import CarriedStream, EventOrder, carried_rows
from headrace.compile.fold_inputs import declared_keys
from headrace.compile.lower import Analyse, select_of
from headrace.compile.plan import CarryPlan, ProcessorPlan
from headrace.compile.resolve import ResolvedQuery
from headrace.core.event import CUT, HIDDEN, TIME
from headrace.define.dialect import sql_of
from headrace.define.processors import ProcessorDefinition


def processor_stream(
    resolved: ResolvedQuery,
    source: exp.Select,
    time: str | None,
    name: str,
    definition: ProcessorDefinition,
    analyse: Analyse,
) -> CarriedStream:
    """Compile a stream of a processor's rows, with the same three parts as any carried stream."""
    origin, call = resolved.definition.query_origin, resolved.definition.processor
    assert call is not None
    columns = [n for n, _ in analyse(sql_of(source), origin) if not n.startswith("_")]
    keys, alias = declared_keys(resolved, call.keys, columns), resolved.stream_alias
    time_us = f"unix_micros({alias}.{time})" if time else "0"
    order = EventOrder(tuple(f"{alias}.{key}" for key in keys), time_us, alias)
    items = [f"{alias}.{column} AS {column}" for column in (*HIDDEN, *columns)]
    sql = select_of(source, [*order.items(), *items], [f"{TIME} IS NOT NULL"])
    outputs = tuple((column, type.spark) for column, type in definition.outputs)
    plan = CarryPlan(name, sql, processor=ProcessorPlan(call.name, tuple(columns), outputs))
    passed = [*(f"`{column}`" for column, _ in outputs), *HIDDEN, CUT]
    return carried_rows(plan, passed, analyse, origin)
