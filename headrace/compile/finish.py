"""The finish of a view: merged rows -> the answer, written in Spark's SQL and run by DuckDB.

Only the functions of headrace.certified may follow the aggregates; they determine the types of the
answer.
"""

from __future__ import annotations

import msgspec

from headrace.certified.relation import AnswerColumn, ReadRelation
from headrace.certified.select import CompiledQuery, compile_query
from headrace.certified.typed import quoted
from headrace.compile.plan import FRESH, MERGED, OutputPlan, ViewPlan
from headrace.core.errors import HeadraceError
from headrace.core.event import KEY
from headrace.core.origin import Origin
from headrace.define.dialect import parse_query

HINT = (
    "docs/functions.md lists the functions that are supported after aggregation; apply others to "
    "the events, before aggregation."
)


def merged_columns(plan: ViewPlan, table: str) -> tuple[AnswerColumn, ...]:
    """The columns of a view's merged rows: its keys and the values of its aggregates. A list is
    identified by its table and column.
    """
    keys = [AnswerColumn(key.column, key.type, key=True) for key in plan.keys]
    lists = [frozenset({f"{table}.{call.column}"} if call.cut else ()) for call in plan.calls]
    calls = [
        AnswerColumn(call.column, call.type, lists=behind)
        for call, behind in zip(plan.calls, lists, strict=True)
    ]
    cuts = [AnswerColumn(call.cut_column, "BOOLEAN") for call in plan.calls if call.cut]
    known = [] if plan.regroups else [AnswerColumn(KEY, "STRING")]
    return (*keys, *calls, AnswerColumn(FRESH, "BOOLEAN"), *cuts, *known)


def answer_columns(plan: ViewPlan) -> tuple[AnswerColumn, ...]:
    """The columns of a view's answer."""
    return tuple(AnswerColumn(out.name, out.type, out.estimate, out.keyed) for out in plan.outputs)


def compile_finish(plan: ViewPlan, table: str, origin: Origin | None = None) -> CompiledQuery:
    """The finish in DuckDB's SQL, over a table of merged rows."""
    merged = ReadRelation(quoted(table), merged_columns(plan, table))
    query = parse_query(plan.finish_sql, Origin("plan", 1))
    try:
        return compile_query(query, lambda name: merged if name == MERGED else None)
    except HeadraceError as error:
        error.message = error.message.replace("over views", "after aggregation")
        error.origin, error.hint = origin, HINT
        raise


def typed_outputs(plan: ViewPlan, origin: Origin) -> ViewPlan:
    """The plan with the types of its outputs."""
    columns = compile_finish(plan, MERGED, origin).columns
    outputs: list[OutputPlan] = [
        msgspec.structs.replace(output, type=column.type)
        for output, column in zip(plan.outputs, columns, strict=True)
    ]
    return msgspec.structs.replace(plan, outputs=tuple(outputs))
