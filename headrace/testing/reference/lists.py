"""Aggregates that give lists and counts of values, from the values of a group in the order of the
log.

A list is cut at its limit: collect_list keeps the first values in the order of the log, collect_set
the smallest different ones. approx_top_k is what it estimates: the values that are there most
often, of equal counts the smaller. A histogram has bins of one width from low (included) to high
(excluded), and what lies below and above them.
tests/testing/test_aggregates.py has a table of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cmp_to_key

from headrace.testing.reference.casts import number
from headrace.testing.reference.values import Value, grouping, order

Tuples = Sequence[tuple[Value, ...]]
_RANK = cmp_to_key(order)


def collect_list(tuples: Tuples, limit: int = 100) -> list[Value]:
    return [x for (x,) in tuples][:limit]


def collect_set(tuples: Tuples, limit: int = 100) -> list[Value]:
    return sorted(_counts(tuples, lambda value, count: value), key=_RANK)[:limit]


def top_k(tuples: Tuples, k: int = 5) -> list[Value]:
    counts = _counts(tuples, lambda value, count: (value, count))
    ordered = sorted(counts, key=lambda pair: (-pair[1], _RANK(pair[0])))
    return [{"item": value, "count": count} for value, count in ordered[:k]]


def frequency(tuples: Tuples, wanted: Value) -> int:
    return sum(1 for (x,) in tuples if x == wanted)


def distinct(tuples: Tuples) -> int:
    return len(_counts(tuples, lambda value, count: value))


def histogram(tuples: Tuples, low: Value, high: Value, bins: int) -> Value:
    below, above, counts = 0, 0, [0] * bins
    for x in (float(number(x)) for (x,) in tuples):
        if x < low:
            below += 1
        elif x >= high:
            above += 1
        else:
            counts[int(bins * (x - low) / (high - low))] += 1
    return {"below": below, "bins": counts, "above": above}


def _counts(tuples: Tuples, shown: Callable[[Value, int], Value]) -> list[Value]:
    """Something of each different value and how often it is there."""
    groups: dict[Value, list[Value]] = {}
    for (x,) in tuples:
        groups.setdefault(grouping(x), []).append(x)
    return [shown(values[0], len(values)) for values in groups.values()]
