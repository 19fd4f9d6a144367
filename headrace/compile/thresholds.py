"""From `count(…) >= n WITHIN … PER …` to its plan: what is counted, and the rows of it.

A row has the key's columns, and when the first and the last of the events came that count.
tests/plans/error_spark_threshold_*.sql hold what is refused; tests/transcripts/threshold_*.yaml say
what it means.
"""

from __future__ import annotations

from sqlglot import exp

from headrace.compile.carried_value import carried_form, carried_type
from headrace.compile.carry import Carried, EventOrder, carried_rows
from headrace.compile.derive import MADE, REACHED
from headrace.compile.keyed import known_keys, needed_time
from headrace.compile.lower import Analyse, select_of
from headrace.compile.moments import refuse_moving_moments
from headrace.compile.plan import CarryPlan, MatchPlan
from headrace.compile.resolve import Resolved
from headrace.core.event import HIDDEN, TIME
from headrace.core.pattern import Threshold
from headrace.define.definitions import NamedExpression
from headrace.define.dialect import parse_query, sql_of


def threshold_stream(
    resolved: Resolved, source: exp.Select, time: str | None, name: str, analyse: Analyse
) -> Carried:
    """A stream of reached thresholds, cut in the same three as a carried one."""
    said, origin = resolved.definition.threshold, resolved.definition.query_origin
    assert said is not None
    alias, moment = resolved.stream_alias, needed_time(resolved, time)
    types = dict(analyse(sql_of(source), origin))
    keys = known_keys(resolved, said.keys, list(types))
    items = {f"c{n}": f"{alias}.{key}" for n, key in enumerate(keys)}
    passed = tuple((f"c{n}", types[key]) for n, key in enumerate(keys))
    if said.counted:
        items["counted"] = _counted(said.counted, source, analyse)
    order = EventOrder(
        tuple(items[column] for column, _ in passed), f"unix_micros({alias}.{moment})", alias
    )
    columns = [*order.items(), *(f"{alias}.{column} AS {column}" for column in HIDDEN)]
    columns += [f"{sql} AS {column}" for column, sql in items.items()]
    counted = "counted" if said.counted else None
    threshold = Threshold(tuple(items), said.least, said.within_us, counted)
    plan = CarryPlan(
        name,
        select_of(source, columns, [f"{TIME} IS NOT NULL"]),
        match=MatchPlan(threshold, passed, tuple((column, "BIGINT") for column in REACHED)),
    )
    given = [f"c{n} AS `{key}`" for n, key in enumerate(keys)]
    given += [f"timestamp_micros({column}) AS {column}" for column in REACHED]
    return carried_rows(plan, [*given, *MADE], analyse, origin)


def _counted(phrase: NamedExpression, source: exp.Select, analyse: Analyse) -> str:
    """What is counted, as the search takes it."""
    refuse_moving_moments(parse_query(f"SELECT {phrase.sql}", phrase.origin), phrase.origin)
    sql = select_of(source, [f"{phrase.sql} AS e"])
    [(_, spark_type)] = analyse(sql, phrase.origin)
    return carried_form(carried_type(spark_type, phrase.sql, phrase.origin), phrase.sql)
