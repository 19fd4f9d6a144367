"""Compiles `count(…) >= n WITHIN … PER …`.

A row has the key's columns, and the times of the first and the last counted event.
tests/plans/error_spark_threshold_*.sql have what is refused; tests/transcripts/threshold_*.yaml
define the semantics.
"""

from __future__ import annotations

from sqlglot import exp

from headrace.compile.carry import CarriedStream, EventOrder, carried_rows
from headrace.compile.derive import ROW_COLUMNS, THRESHOLD_COLUMNS
from headrace.compile.determinism import refuse_relative_times
from headrace.compile.fold_inputs import (
    carried_sql,
    carried_type,
    declared_keys,
    require_event_time,
)
from headrace.compile.lower import Analyse, select_of
from headrace.compile.plan import CarryPlan, MatchPlan
from headrace.compile.resolve import ResolvedQuery
from headrace.core.event import HIDDEN, TIME
from headrace.core.pattern import Threshold
from headrace.define.definitions import NamedExpression
from headrace.define.dialect import parse_query, sql_of


def threshold_stream(
    resolved: ResolvedQuery, source: exp.Select, time: str | None, name: str, analyse: Analyse
) -> CarriedStream:
    """Compile a stream of reached thresholds, with the same three parts as any carried stream."""
    definition, origin = resolved.definition.threshold, resolved.definition.query_origin
    assert definition is not None
    alias, time = resolved.stream_alias, require_event_time(resolved, time)
    types = dict(analyse(sql_of(source), origin))
    keys = declared_keys(resolved, definition.keys, list(types))
    items = {f"c{n}": f"{alias}.{key}" for n, key in enumerate(keys)}
    passed = tuple((f"c{n}", types[key]) for n, key in enumerate(keys))
    if definition.counted:
        items["counted"] = _counted(definition.counted, source, analyse)
    order = EventOrder(
        tuple(items[column] for column, _ in passed), f"unix_micros({alias}.{time})", alias
    )
    columns = [*order.items(), *(f"{alias}.{column} AS {column}" for column in HIDDEN)]
    columns += [f"{sql} AS {column}" for column, sql in items.items()]
    counted = "counted" if definition.counted else None
    threshold = Threshold(tuple(items), definition.least, definition.within_us, counted)
    plan = CarryPlan(
        name,
        select_of(source, columns, [f"{TIME} IS NOT NULL"]),
        match=MatchPlan(
            threshold, passed, tuple((column, "BIGINT") for column in THRESHOLD_COLUMNS)
        ),
    )
    given = [f"c{n} AS `{key}`" for n, key in enumerate(keys)]
    given += [f"timestamp_micros({column}) AS {column}" for column in THRESHOLD_COLUMNS]
    return carried_rows(plan, [*given, *ROW_COLUMNS], analyse, origin)


def _counted(phrase: NamedExpression, source: exp.Select, analyse: Analyse) -> str:
    """SQL of the counted expression, as the matcher reads it."""
    refuse_relative_times(parse_query(f"SELECT {phrase.sql}", phrase.origin), phrase.origin)
    sql = select_of(source, [f"{phrase.sql} AS e"])
    [(_, spark_type)] = analyse(sql, phrase.origin)
    return carried_sql(carried_type(spark_type, phrase.sql, phrase.origin), phrase.sql)
