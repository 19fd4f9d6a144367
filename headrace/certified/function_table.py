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


OFFERED = FunctionTable(SCALARS, AGGREGATES)  # to queries over views
