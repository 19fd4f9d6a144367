"""Our aggregates in DuckDB's SQL, each computed by DuckDB from the events themselves.

Lists are ordered by the place in the log, first and last by event time and place. An estimate whose
error is not a share of the value is not computed: it is NULL here, and the audit says that it was
not compared. tests/audit/test_oracle.py calls every row of the table.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from headrace.compile.calls import AggregateCall, read_call
from headrace.core.aggregate import AGGREGATES
from headrace.core.origin import Origin
from headrace.define.dialect import parse_translatable

SEQ = "_offset * 65536 + _partition"
_ORIGIN = Origin("plan", 1)
# x, the FILTER clause, the call and the column of the event time -> SQL.
Form = Callable[[str, str, AggregateCall, str | None], str]


def duckdb_call(node: exp.Expr, time: str | None) -> exp.Expr | None:
    """DuckDB's form of a call that it lacks or defines differently; None for every other node."""
    if not isinstance(node, exp.Func | exp.Filter | exp.IgnoreNulls):
        return None
    call = read_call(node, _ORIGIN)
    if call is None:
        return None
    estimate = AGGREGATES[call.name].estimate
    if estimate and estimate.of != "value":
        return exp.null()
    if call.name not in _FORMS:
        return None
    x = _sql(call.arguments[0])
    text = _FORMS[call.name](x, _when(call, time), call, time)
    duck: exp.Expr = exp.maybe_parse(text, dialect="duckdb")
    return duck


def _when(call: AggregateCall, time: str | None) -> str:
    """The FILTER clause: the call's own, and what must not be NULL."""
    names = {"x": call.arguments[0], "y": call.arguments[-1], "_time": time or "0"}
    needed = [f"{_sql(names[name])} IS NOT NULL" for name in AGGREGATES[call.name].needs]
    conditions = [f"({_sql(call.condition)})"] if call.condition else []
    conditions += needed or ["true"]
    return f"FILTER (WHERE {' AND '.join(conditions)})"


def _sql(text: str) -> str:
    return str(parse_translatable(f"SELECT {text}", _ORIGIN).expressions[0].sql(dialect="duckdb"))


def _end(pick: str) -> Form:
    def form(x: str, when: str, call: AggregateCall, time: str | None) -> str:
        order = f"{time}, {SEQ}" if time else SEQ
        return f"{pick}({x} ORDER BY {order}, {x} NULLS FIRST) {when}"

    return form


def _collect_list(x: str, when: str, call: AggregateCall, time: str | None) -> str:
    return _cut(f"list({x} ORDER BY {SEQ}, {x}) {when}", call.parameters[0])


def _collect_set(x: str, when: str, call: AggregateCall, time: str | None) -> str:
    return _cut(f"list_sort(list(DISTINCT {x}) {when})", call.parameters[0])


def _cut(values: str, limit: int) -> str:
    return f"coalesce(list_slice({values}, 1, {limit}), [])"


def _histogram(x: str, when: str, call: AggregateCall, time: str | None) -> str:
    low, high, bins = call.parameters
    place = f"floor({bins} * ({x} - {low}) / ({high} - {low}))"
    inside = f"{x} >= {low} AND {x} < {high}"
    tests = [
        f"{x} < {low}",
        *(f"{inside} AND {place} = {n}" for n in range(bins)),
        f"{x} >= {high}",
    ]
    below, *counts, above = [f"count(CASE WHEN {test} THEN 1 END) {when}" for test in tests]
    return f"struct_pack(below := {below}, bins := [{', '.join(counts)}], above := {above})"


def _pair(x: str, when: str, call: AggregateCall, time: str | None) -> str:
    value = f"{call.name}({x}, {_sql(call.arguments[1])}) {when}"
    return f"CASE WHEN NOT isnan({value}) THEN {value} END"


def _shape(power: int) -> Form:
    """By the distances from the mean: DuckDB's own go by sums of powers, and lose digits."""

    def form(x: str, when: str, call: AggregateCall, time: str | None) -> str:
        mean, squares = f"avg({x}) {when}", f"var_pop({x}) {when}"
        distances = f"list_transform(list({x}) {when}, _v -> power(_v - {mean}, {power}))"
        ratio = f"list_avg({distances}) / power(nullif({squares}, 0), {power} / 2.0)"
        return f"({ratio}) - {3 if power == 4 else 0}"

    return form


def _distinct(x: str, when: str, call: AggregateCall, time: str | None) -> str:
    return f"count(DISTINCT {x}) {when}"


_FORMS: dict[str, Form] = {
    "first": _end("first"),
    "last": _end("last"),
    "collect_list": _collect_list,
    "collect_set": _collect_set,
    "histogram": _histogram,
    "covar_samp": _pair,
    "covar_pop": _pair,
    "corr": _pair,
    "skewness": _shape(3),
    "kurtosis": _shape(4),
    "bitmap_count_distinct": _distinct,
}
