"""What an aggregate is made of: merges, partials, parameters, and how far it may be off.

A row of the table is an `Aggregate`; applied to arguments of known types it is a
`LoweredAggregate`: the partials that both layers keep, and the finish that makes the answer's value
of them. tests/laws/test_merge.py and tests/laws/test_seam.py check the laws for every row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from headrace.core.schema import Type


class Merge(StrEnum):
    """How two partials of one kind become one."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"
    MOMENTS = "moments"  # count, mean, sum of squared distances from the mean
    MAX_BY = "max_by"  # value, order, place in the log
    MIN_BY = "min_by"
    COUNTED = "counted"  # a number that batch has counted; it is true only while it is alone
    # States: one column, merged by functions of Python (serving/states).
    HLL = "hll"
    KLL = "kll"
    TOP_K = "top_k"
    COUNT_MIN = "count_min"
    COLLECT_LIST = "collect_list"
    COLLECT_SET = "collect_set"
    IDS = "ids"
    PAIR = "pair"  # count, means, squared distances and their product, of two numbers
    DECIMAL_SUM = "decimal_sum"  # decimals as text, exact
    SHAPE = "shape"  # count, mean, and the second, third and fourth powers of distances


@dataclass(frozen=True, slots=True)
class Partial:
    """Columns that are merged together; their number depends on `merge` alone."""

    merge: Merge
    lifts: tuple[str, ...]
    storages: tuple[str, ...]
    counts: str = "{x:key}"  # of COUNTED: the values whose number batch counts


@dataclass(frozen=True, slots=True)
class Approximation:
    """Where a value is an estimate, and how far it is off: its standard error, or a bound of it."""

    when: str  # "speed": until batch covers it; "always"
    error: float
    of: str = "value"  # what the error is a share of: the value, the rank, or the events


def error_text(error: float, of: str) -> str:
    """The error in words.

    >>> error_text(0.0163, "value"), error_text(0.0133, "rank")
    ('± 1.6%', '± 1.3% of the rank')
    """
    return f"± {error:.1%}" + ("" if of == "value" else f" of the {of}")


def largest_error(estimates: Iterable[Approximation | None]) -> Approximation | None:
    """Of the approximations of several values, the one with the largest error."""
    known = [estimate for estimate in estimates if estimate is not None]
    return max(known, key=lambda e: (e.when == "always", e.error, e.of), default=None)


@dataclass(frozen=True, slots=True)
class AggregateParameter:
    """An argument that a definition writes as a literal."""

    name: str
    kind: type  # int, float, or object: a number or a string
    default: Any = None  # None: it is required
    low: float = float("-inf")
    high: float = float("inf")

    @property
    def takes(self) -> str:
        kind = {int: "a whole number", float: "a number"}.get(self.kind, "a number or a string")
        bounded = self.low != float("-inf")
        return f"{kind} from {self.low:g} to {self.high:g}" if bounded else kind

    def allows(self, value: Any) -> bool:
        if self.kind is object:
            return True
        number = isinstance(value, int) or (isinstance(value, float) and self.kind is float)
        return number and self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class LoweredAggregate:
    """An aggregate applied to arguments of known types."""

    partials: tuple[Partial, ...]
    finish: str
    type: Type
    cut: str = ""  # of a list: SQL over the partials that is true where it was cut at its limit


Types = tuple[Type, ...]
ParameterValues = tuple[Any, ...]  # the values of the parameters
Lower = Callable[[Types, ParameterValues], LoweredAggregate | None]  # None: not for these types


@dataclass(frozen=True, slots=True)
class Aggregate:
    name: str
    arguments: int
    takes: str
    lower: Lower
    estimate: Approximation | None = None
    parameters: tuple[AggregateParameter, ...] = ()
    # The names in a lift that must not be NULL: x, y, or _time.
    needs: tuple[str, ...] = ()
    # What is wrong with the parameters together, each of which is allowed by itself.
    refuses: Callable[[ParameterValues], str | None] = lambda said: None


ANY, NUMBER, TRUTH = "any value", "a number", "BOOLEAN"
ORDERED = "a value that has an order: not an ARRAY, MAP, STRUCT or VARIANT"
EQUAL = "any value but VARIANT"
WHOLE, TWO_NUMBERS = "a whole number", "two numbers that are not DECIMAL"
BIGINT, DOUBLE, BOOLEAN = Type("BIGINT"), Type("DOUBLE"), Type("BOOLEAN")
