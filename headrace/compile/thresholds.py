"""From `count(…) >= n WITHIN … PER …` to its plan: what is counted, and the rows of it.

A row has the key's columns, and when the first and the last of the events came that count.
tests/plans/error_spark_threshold_*.sql hold what is refused; tests/transcripts/threshold_*.yaml say
what it means.
"""

from __future__ import annotations

from sqlglot import exp

from headrace.compile.carry import Carried, Order, relation_ddl
from headrace.compile.derive import REACHED
from headrace.compile.lower import Analyse, known_type, select_of, storage_form
from headrace.compile.plan import CarryPlan, MatchPlan
from headrace.compile.resolve import HIDDEN, Resolved
from headrace.core.errors import UnknownColumn, Unsupported
from headrace.core.event import CUT, TIME
from headrace.core.pattern import Threshold
from headrace.define.dialect import parse_query, sql_of


def threshold_stream(
    resolved: Resolved, source: exp.Select, time: str | None, name: str, analyse: Analyse
) -> Carried:
    """A stream of reached thresholds, cut in the same three as a carried one."""
    said, origin = resolved.definition.threshold, resolved.definition.query_origin
    assert said is not None
    if time is None:
        raise Unsupported(
            f"stream '{resolved.definition.name}' needs its events in order, and their stream has "
            "no event time",
            hint="declare WATERMARK ts DELAY OF INTERVAL … in CREATE STREAM.",
            origin=origin,
        )
    types = dict(analyse(sql_of(source), origin))
    known = {column.lower(): column for column in types}
    if missing := [key for key in said.keys if key.lower() not in known]:
        raise UnknownColumn(
            f"stream '{resolved.definition.name}' counts PER a column that '{resolved.stream}' "
            f"does not have: '{missing[0]}'",
            detail=f"{resolved.stream} has: {', '.join(n for n in types if n[0] != '_')}.",
            origin=origin,
        )
    alias = resolved.stream_alias
    keys = [(f"c{n}", known[key.lower()]) for n, key in enumerate(said.keys)]
    items = [f"{alias}.{key} AS {column}" for column, key in keys]
    columns = [column for column, _ in keys]
    if said.counted:
        place = said.counted.origin
        [(_, spark_type)] = analyse(select_of(source, [f"{said.counted.sql} AS e"]), place)
        type = known_type(spark_type, said.counted.sql, place)
        items.append(f"{storage_form(type, said.counted.sql)} AS counted")
        columns.append("counted")
    order = Order(tuple(f"{alias}.{key}" for _, key in keys), f"unix_micros({alias}.{time})", alias)
    hidden = [f"{alias}.{column} AS {column}" for column in HIDDEN]
    sql = select_of(source, [*order.items(), *hidden, *items], [f"{TIME} IS NOT NULL"])
    counted = "counted" if said.counted else None
    plan = CarryPlan(
        name,
        sql,
        match=MatchPlan(
            Threshold(tuple(columns), said.least, said.within_us, counted),
            tuple((column, types[key]) for column, key in keys),
            tuple((name, "BIGINT") for name in REACHED),
        ),
    )
    given = [f"{column} AS `{key}`" for column, key in keys]
    given += [f"timestamp_micros({name}) AS {name}" for name in REACHED]
    text = f"SELECT {', '.join([*given, *HIDDEN, CUT])} FROM {name}"
    select = parse_query(text, origin)
    assert isinstance(select, exp.Select)
    return Carried(plan, select, relation_ddl(plan, analyse, origin))
