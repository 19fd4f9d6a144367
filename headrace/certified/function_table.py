"""The functions that an expression may call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.certified.aggregates import AGGREGATES, AggregateFunction
from headrace.certified.function import Scalar
from headrace.certified.functions import SCALARS


@dataclass(frozen=True, slots=True)
class FunctionTable:
    scalars: Mapping[str, Sequence[Scalar]]
    aggregates: Mapping[str, AggregateFunction]
    strict: bool = False  # refuse whatever may have another value in Spark


OFFERED = FunctionTable(SCALARS, AGGREGATES)  # to queries over views


def offered_at(now_us: int) -> FunctionTable:
    """The functions of one query, with the time at which it is answered."""
    now = f"make_timestamp({now_us})"
    moments = {
        "now": (now, "TIMESTAMP"),
        "current_timestamp": (now, "TIMESTAMP"),
        "current_date": (f"CAST({now} AS DATE)", "DATE"),
    }
    scalars = {name: [Scalar(name, (), sql, type)] for name, (sql, type) in moments.items()}
    return FunctionTable({**SCALARS, **scalars}, AGGREGATES)
