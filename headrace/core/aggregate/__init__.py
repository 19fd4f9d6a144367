"""The table of aggregates. Each defines four operations, all of them in SQL:

  zero    a key without events has no row, and a missing partial is NULL, which every merge ignores;
  lift    Spark SQL: events -> partial columns (both layers, over different events);
  merge   how two partials become one (`Merge`; serving/merge.py has each in DuckDB's SQL);
  finish  DuckDB's SQL: partial columns -> the answer's value, as it is stored.

For every aggregate and every split of the events, merge(lift(a), lift(b)) = lift(a + b):
associative, commutative, with NULL as zero. tests/laws/test_seam.py checks this for every row of
the table.

In a lift, {x} and {y} are the arguments as Spark has them, {x:stored} is one as the store keeps it,
{x:key} the same with equal values equal, {x:part} and {x:key_part} these as parts of JSON
(core/storage.py); {when} is the FILTER clause, `_seq` the event's place in the log and `_time` its
event time. In a finish, {0}, {1}, … are the partial columns; `finish_<merge>`
reads a state and `cut_<merge>` says whether a list was cut (serving/states).
"""

from headrace.core.aggregate import events, lists, numbers, shapes, sketches
from headrace.core.aggregate.model import (
    Aggregate,
    AggregateParameter,
    Approximation,
    LoweredAggregate,
    Merge,
    ParameterValues,
    Partial,
    error_text,
    largest_error,
)
from headrace.core.aggregate.sketches import HLL_ERROR, HLL_LG_K

__all__ = [
    "AGGREGATES",
    "HLL_ERROR",
    "HLL_LG_K",
    "SYNONYMS",
    "Aggregate",
    "AggregateParameter",
    "Approximation",
    "LoweredAggregate",
    "Merge",
    "ParameterValues",
    "Partial",
    "error_text",
    "largest_error",
]

AGGREGATES: dict[str, Aggregate] = {
    row.name: row for room in (numbers, events, sketches, lists, shapes) for row in room.ROWS
}

SYNONYMS = {
    "mean": "avg",
    "variance": "var_samp",
    "stddev": "stddev_samp",
    "std": "stddev_samp",
    "every": "bool_and",
    "any": "bool_or",
    "some": "bool_or",
    "first_value": "first",
    "last_value": "last",
    "approx_percentile": "percentile_approx",
}
