"""The tables of functions, by family."""

from __future__ import annotations

from collections import defaultdict

from headrace.certified.function import Scalar
from headrace.certified.functions import choices, nested, numbers, texts, times

SCALARS: dict[str, list[Scalar]] = defaultdict(list)
for _row in (*texts.ROWS, *numbers.ROWS, *times.ROWS, *choices.ROWS, *nested.ROWS):
    SCALARS[_row.name].append(_row)
SCALARS = dict(SCALARS)
