"""The table of aggregates. Each speaks four verbs, all of them SQL:

  zero    a key without events has no row, and a missing partial is NULL, which every merge ignores;
  lift    Spark SQL: events -> partial columns (both layers, over different events);
  merge   how two partials become one (`Merge`; serving/merge.py says each in the store's SQL);
  finish  portable SQL: partial columns -> the answer's value.

For every aggregate and every split of the events, merge(lift(a), lift(b)) = lift(a + b):
associative, commutative, with NULL as zero. tests/laws/test_seam.py checks this for every row of
the table.

In a lift, {x} and {y} are the arguments, {when} the FILTER clause, and _seq the event's place in
the log. In a finish, {0}, {1}, … are the partial columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from headrace.core.schema import Type

HLL_LG_K = 12
# One standard error of an HLL sketch with 2^12 registers.
HLL_ERROR = 0.0163


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


@dataclass(frozen=True, slots=True)
class Partial:
    """Columns that are merged together; their number depends on `merge` alone."""

    merge: Merge
    lifts: tuple[str, ...]
    storages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lowered:
    """An aggregate applied to arguments of known types."""

    partials: tuple[Partial, ...]
    finish: str
    type: Type


@dataclass(frozen=True, slots=True)
class Aggregate:
    name: str
    arguments: int
    takes: str
    lower: Callable[[tuple[Type, ...]], Lowered | None]  # None: not for these types
    estimate: bool = False


BIGINT, DOUBLE, BOOLEAN = Type("BIGINT"), Type("DOUBLE"), Type("BOOLEAN")


def _sum_of(lift: str, storage: str = "INTEGER") -> Partial:
    return Partial(Merge.SUM, (lift + "{when}",), (storage,))


# A BIGINT is summed as its high and low halves, which cannot overflow below 2^31 events. So the
# merge is associative also when a part of the events would overflow, and only the total decides:
# NULL outside BIGINT.
_HALVES = (_sum_of("sum(shiftright({x}, 32))"), _sum_of("sum({x} & 4294967295)"))
_WHOLE = (
    "CASE WHEN {0} + ({1} >> 32) BETWEEN -2147483648 AND 2147483647 "
    "THEN ({0} + ({1} >> 32)) * 4294967296 + ({1} & 4294967295) END"
)
_COUNT = _sum_of("count({x})")


def _count(types: tuple[Type, ...]) -> Lowered:
    return Lowered((_COUNT,), "coalesce({0}, 0)", BIGINT)


def _sum(types: tuple[Type, ...]) -> Lowered | None:
    match types[0]:
        case Type("INT", False):
            return Lowered((_sum_of("sum({x})"),), "{0}", BIGINT)
        case Type("BIGINT", False):
            return Lowered(_HALVES, _WHOLE, BIGINT)
        case Type("DOUBLE", False):
            return Lowered((_sum_of("sum({x})", "REAL"),), "{0}", DOUBLE)
    return None


def _avg(types: tuple[Type, ...]) -> Lowered | None:
    sums: tuple[Partial, ...]
    match types[0]:
        case Type("INT", False):
            finish, sums = "{0} * 1.0 / nullif({1}, 0)", (_sum_of("sum({x})"),)
        case Type("BIGINT", False):
            # The low half is carried into the high one first, or digits of the sum would be lost.
            high, low = "({0} + ({1} >> 32))", "({1} & 4294967295)"
            finish, sums = f"({high} * 4294967296.0 + {low}) / nullif({{2}}, 0)", _HALVES
        case Type("DOUBLE", False):
            finish, sums = "{0} / nullif({1}, 0)", (_sum_of("sum({x})", "REAL"),)
        case _:
            return None
    return Lowered((*sums, _COUNT), finish, DOUBLE)


def _extreme(merge: Merge) -> Callable[[tuple[Type, ...]], Lowered | None]:
    def lower(types: tuple[Type, ...]) -> Lowered | None:
        if types[0].array:
            return None
        partial = Partial(merge, (f"{merge}({{x}}){{when}}",), (types[0].storage,))
        return Lowered((partial,), "{0}", types[0])

    return lower


def _boolean(merge: Merge) -> Callable[[tuple[Type, ...]], Lowered | None]:
    def lower(types: tuple[Type, ...]) -> Lowered | None:
        partial = Partial(merge, (f"{merge}({{x}}){{when}}",), ("INTEGER",))
        return Lowered((partial,), "{0} <> 0", BOOLEAN) if types[0] == BOOLEAN else None

    return lower


def _moments(finish: str) -> Callable[[tuple[Type, ...]], Lowered | None]:
    lifts = ("count({x}){when}", "avg({x}){when}", "var_pop({x}){when} * count({x}){when}")
    partial = Partial(Merge.MOMENTS, lifts, ("INTEGER", "REAL", "REAL"))

    def lower(types: tuple[Type, ...]) -> Lowered | None:
        return Lowered((partial,), finish, DOUBLE) if types[0].numeric else None

    return lower


def _by(merge: Merge) -> Callable[[tuple[Type, ...]], Lowered | None]:
    # Events that tie are told apart by their place in the log: the latest wins. Within one event,
    # which an explode may have multiplied, the value itself decides.
    place = "_seq" if merge is Merge.MAX_BY else "-_seq"
    order = f"struct({{y}}, {place}, {{x}})"
    lifts = (
        f"{merge}({{x}}, {order}){{when}}",
        f"{merge.value[:3]}({{y}}){{when}}",
        f"{merge}(_seq, {order}){{when}}",
    )

    def lower(types: tuple[Type, ...]) -> Lowered | None:
        if types[0].array or types[1].array:
            return None
        storages = (types[0].storage, types[1].storage, "INTEGER")
        return Lowered((Partial(merge, lifts, storages),), "{0}", types[0])

    return lower


def _distinct(types: tuple[Type, ...]) -> Lowered | None:
    if types[0].array:
        return None
    # Spark sketches whole numbers and text. Adding zero makes -0.0 and 0.0 one value; a sketch
    # passes over empty text, so no text is left empty.
    forms = {"DOUBLE": "cast({x} + 0.0 as string)", "STRING": "concat({x}, '.')"}
    value = forms.get(types[0].name, "{x}")
    lift = f"hll_sketch_agg({value}, {HLL_LG_K}){{when}}"
    sketch = Partial(Merge.HLL, (lift,), ("BLOB",))
    return Lowered((sketch,), "coalesce(finish_hll({0}), 0)", BIGINT)


def _count_distinct(types: tuple[Type, ...]) -> Lowered | None:
    """The sketch, and beside it the number that batch counts."""
    sketched = _distinct(types)
    if sketched is None:
        return None
    counted = Partial(Merge.COUNTED, (), ("INTEGER",))
    return Lowered((*sketched.partials, counted), "coalesce({1}, finish_hll({0}), 0)", BIGINT)


_ANY, _NUMBER, _TRUTH = "any value", "INT, BIGINT or DOUBLE", "BOOLEAN"
_VAR_SAMP = "CASE WHEN {0} > 1 THEN {2} / ({0} - 1) END"
_VAR_POP = "{2} / nullif({0}, 0)"

AGGREGATES: dict[str, Aggregate] = {
    row.name: row
    for row in (
        Aggregate("count", 1, _ANY, _count),
        Aggregate("sum", 1, _NUMBER, _sum),
        Aggregate("avg", 1, _NUMBER, _avg),
        Aggregate("min", 1, _ANY, _extreme(Merge.MIN)),
        Aggregate("max", 1, _ANY, _extreme(Merge.MAX)),
        Aggregate("var_samp", 1, _NUMBER, _moments(_VAR_SAMP)),
        Aggregate("var_pop", 1, _NUMBER, _moments(_VAR_POP)),
        Aggregate("stddev_samp", 1, _NUMBER, _moments(f"sqrt({_VAR_SAMP})")),
        Aggregate("stddev_pop", 1, _NUMBER, _moments(f"sqrt({_VAR_POP})")),
        Aggregate("bool_and", 1, _TRUTH, _boolean(Merge.MIN)),
        Aggregate("bool_or", 1, _TRUTH, _boolean(Merge.MAX)),
        Aggregate("max_by", 2, _ANY, _by(Merge.MAX_BY)),
        Aggregate("min_by", 2, _ANY, _by(Merge.MIN_BY)),
        Aggregate("count_distinct", 1, _ANY, _count_distinct, estimate=True),
        Aggregate("approx_count_distinct", 1, _ANY, _distinct, estimate=True),
    )
}

SYNONYMS = {
    "mean": "avg",
    "variance": "var_samp",
    "stddev": "stddev_samp",
    "std": "stddev_samp",
    "every": "bool_and",
    "any": "bool_or",
    "some": "bool_or",
}
