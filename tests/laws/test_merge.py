"""The seam without Spark: partials lifted by hand, merged as reading merges them.

For every kind of merge, however the events are cut and in whatever order the pieces come,
    merge(lift(a), lift(b), …) = lift(a + b + …),
with NULL as zero, all at once and two by two.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import isclose, prod, sqrt
from typing import Any

import pyarrow as pa
import pytest
from chance import examples
from datasketches import (
    frequent_strings_sketch,
    hll_sketch,
    kll_doubles_sketch,
    tgt_hll_type,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.compile.plan import KeyPlan, PartialPlan, ViewPlan
from headrace.core.aggregate import HLL_LG_K, Merge
from headrace.core.aggregate.sketches import KLL_K
from headrace.core.schema import Type
from headrace.core.storage import decimal_text
from headrace.serving.engine import run
from headrace.serving.merge import GROUP, columns_of, merge_sql, stored_schema
from headrace.serving.states import STATES, finish_state, merge_states

Row = tuple[Any, ...]
ZERO_MOMENTS = (0, None, None)


@dataclass(frozen=True)
class Case:
    """One kind of merge: its events, how they are lifted, and when two partials are the same."""

    merge: Merge
    storages: tuple[str, ...]
    events: st.SearchStrategy[Any]
    lift: Callable[[Sequence[Any]], Row]
    same: Callable[[Row, Row], bool] = lambda wanted, found: wanted == found


def lift_sum(events: Sequence[Any]) -> Row:
    return (sum(events) if events else None,)


def lift_extreme(choose: Callable[[Any], Any]) -> Callable[[Sequence[Any]], Row]:
    return lambda events: (choose(events) if events else None,)


def lift_moments(events: Sequence[Any]) -> Row:
    """Computed in fractions and rounded once, as far as three doubles can say it."""
    if not events:
        return ZERO_MOMENTS
    exact = [Fraction(value) for value in events]
    mean = sum(exact) / len(exact)
    return len(exact), float(mean), float(sum((value - mean) ** 2 for value in exact))


def same_moments(wanted: Row, found: Row) -> bool:
    if wanted[0] in (0, None) or found[0] in (0, None):
        return (wanted[0] or 0) == (found[0] or 0)
    (count, mean, spread), (_, found_mean, found_spread) = wanted, found
    # A stored mean is rounded to a double, which is what no merge can make good.
    rounding = abs(mean) * 2.0**-52
    allowed = 1e-9 * spread + 16 * (count * rounding**2 + rounding * (count * spread) ** 0.5)
    close = abs(mean - found_mean) <= 1e-12 * abs(mean) + 4 * rounding + 1e-12 * spread**0.5
    return count == found[0] and close and abs(spread - found_spread) <= allowed


def lift_by(sign: int) -> Callable[[Sequence[Any]], Row]:
    """The value with the greatest (or least) order; among equals the latest in the log."""

    def lift(events: Sequence[Any]) -> Row:
        if not events:
            return None, None, None
        best = max(sign * order for _, order, _ in events)
        return max((e for e in events if sign * e[1] == best), key=lambda event: event[2])

    return lift


def lift_sketch(events: Sequence[Any]) -> Row:
    sketch = hll_sketch(HLL_LG_K, tgt_hll_type.HLL_8)
    for value in events:
        sketch.update(value)
    return (bytes(sketch.serialize_compact()),)


def same_finish(kind: Merge, *said: Any) -> Callable[[Row, Row], bool]:
    """States may be written differently, if they say the same; that of nothing may be NULL."""

    def same(wanted: Row, found: Row) -> bool:
        values = [finish_state(kind, row[0], *said) or 0 for row in (wanted, found)]
        return bool(values[0] == values[1] or {*values} == {0, "[]"})

    return same


def lift_kll(events: Sequence[Any]) -> Row:
    sketch = kll_doubles_sketch(KLL_K)
    for value in events:
        sketch.update(value)
    return (bytes(sketch.serialize()),)


def lift_top_k(events: Sequence[Any]) -> Row:
    sketch = frequent_strings_sketch(10)
    for value in events:
        sketch.update(str(value))
    return (bytes(sketch.serialize()),)


def lift_count_min(events: Sequence[Any]) -> Row:
    """As Spark makes it, but with one counter for each number below 8."""
    counters = [sum(event == n for event in events) for n in range(8)]
    return (struct.pack(">iqii8x8q", 1, len(events), 1, 8, *counters),)


def lift_list(events: Sequence[Any]) -> Row:
    items = sorted((place, value) for value, place in events)
    kept = [{"s": place, "v": value} for place, value in items[:4]]
    return (json.dumps({"type": "STRING", "limit": 3, "items": kept}),)


def lift_set(type: str, order: Callable[[Any], Any] = lambda v: v) -> Callable[..., Row]:
    """The smallest of the different values, which are parts of JSON."""

    def lift(events: Sequence[Any]) -> Row:
        different = {json.dumps(event): event for event in events}
        items = sorted(different.values(), key=order)[:4]
        return (json.dumps({"type": type, "limit": 3, "items": items}),)

    return lift


def nulls_first(part: Sequence[Any]) -> Any:
    return [(value is not None, value) for value in part]


def lift_decimals(events: Sequence[Any]) -> Row:
    """A sum of decimals as Spark casts it to text."""
    return (f"{sum(events):f}" if events else None,)


def lift_kept(type: str, choose: Callable[[Any], Any]) -> Callable[[Sequence[Any]], Row]:
    """The extreme of values, in the form in which they are kept."""
    precision, scale = Type.parse(type).size or (0, 0)

    def lift(events: Sequence[Any]) -> Row:
        return (decimal_text(choose(events), precision, scale) if events else None,)

    return lift


def nan_last(value: Any) -> Any:
    nan = value == "NaN" or (isinstance(value, float) and math.isnan(value))
    return nan, 0 if nan else value


def lift_reals(choose: Callable[..., Any]) -> Callable[[Sequence[Any]], Row]:
    return lambda events: (choose(events, key=nan_last) if events else None,)


def same_reals(wanted: Row, found: Row) -> bool:
    return repr(wanted) == repr(found) or wanted == found


def same_decimals(wanted: Row, found: Row) -> bool:
    """Equal as numbers; a sum of no decimals is NULL on both sides."""
    (a,), (b,) = wanted, found
    return a == b or (None not in (a, b) and Decimal(a) == Decimal(b))


def lift_ids(events: Sequence[Any]) -> Row:
    return (",".join(map(str, set(events))).encode(),)


def lift_powers(*powers: tuple[int, ...]) -> Callable[[Sequence[Any]], Row]:
    """Count, means, and the sums of products of these powers of the distances, in fractions."""

    def lift(events: Sequence[Any]) -> Row:
        if not events:
            return (None,)
        columns = [[Fraction(value) for value in column] for column in zip(*events, strict=True)]
        means = [sum(column) / len(column) for column in columns]
        sums = [
            sum(
                prod((v - m) ** p for v, m, p in zip(values, means, power, strict=True))
                for values in zip(*columns, strict=True)
            )
            for power in powers
        ]
        return (" ".join(repr(float(number)) for number in (len(events), *means, *sums)),)

    return lift


def same_numbers(kind: Merge, *names: str) -> Callable[[Row, Row], bool]:
    """What is read from both is the same to nine digits."""

    def same(wanted: Row, found: Row) -> bool:
        pairs = [[finish_state(kind, row[0], name) for row in (wanted, found)] for name in names]
        return all(a == b or isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) for a, b in pairs)

    return same


def same_pairs(wanted: Row, found: Row) -> bool:
    """A sum of products is as exact as the spreads that it is made of are large: it may cancel."""
    if wanted == found:
        return True
    ours, theirs = ([float(text) for text in row[0].split()] for row in (wanted, found))
    *_, product, one, other = ours
    plain = [pair for n, pair in enumerate(zip(ours, theirs, strict=True)) if n != 3]
    scale = max(1.0, sqrt(one * other))
    return abs(product - theirs[3]) <= 1e-9 * scale and all(
        isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) for a, b in plain
    )


NUMBERS, BIGINTS = st.integers(-(2**40), 2**40), st.integers(-(2**63), 2**63 - 1)
FAR = st.builds(
    lambda base, step: float(base + step),
    st.sampled_from([0, 10**6, 10**15, -(10**15)]),
    st.integers(-9, 9),
)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False, width=64, min_value=-1e9, max_value=1e9)
# Few orders, so that there are ties; the place in the log is given below and is never the same.
PAIRS = st.tuples(st.none() | BIGINTS, st.integers(-2, 2))
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4)

SMALL = st.integers(0, 7)
OBJECTS = st.tuples(st.none() | SMALL.map(lambda n: json.dumps({"a": n})), st.integers(-2, 2))
BYTES = st.tuples(st.none() | st.binary(max_size=2), st.integers(-2, 2))
REALS = st.floats()
MONEY = st.decimals(-(10**20), 10**20, places=2)
# Far from zero too, where sums of plain powers would lose every digit.
EIGHTHS = st.builds(
    lambda base, step: base + step / 8, st.sampled_from([0, 10**6]), st.integers(-40, 40)
)
# These need the place in the log.
PLACED = {Merge.MAX_BY, Merge.MIN_BY, Merge.COLLECT_LIST}

CASES = [
    Case(Merge.SUM, ("INTEGER",), NUMBERS, lift_sum),
    # Eighths of this size add up exactly, in any order.
    Case(Merge.SUM, ("REAL",), EIGHTHS, lift_sum),
    Case(Merge.MIN, ("INTEGER",), BIGINTS, lift_extreme(min)),
    Case(Merge.MAX, ("INTEGER",), BIGINTS, lift_extreme(max)),
    Case(Merge.MIN, ("TEXT",), TEXTS, lift_extreme(min)),
    Case(Merge.MAX, ("TEXT",), TEXTS, lift_extreme(max)),
    Case(Merge.MIN, ("REAL",), REALS, lift_reals(min), same_reals),
    Case(Merge.MAX, ("REAL",), REALS, lift_reals(max), same_reals),
    Case(Merge.MIN, ("BLOB",), st.binary(max_size=4), lift_extreme(min)),
    Case(Merge.MAX, ("BLOB",), st.binary(max_size=4), lift_extreme(max)),
    Case(Merge.MIN, ("text",), MONEY, lift_kept("DECIMAL(24,2)", min)),
    Case(Merge.MAX, ("text",), MONEY, lift_kept("DECIMAL(24,2)", max)),
    Case(Merge.MOMENTS, ("INTEGER", "REAL", "REAL"), FAR | DOUBLES, lift_moments, same_moments),
    Case(Merge.MAX_BY, ("INTEGER", "INTEGER", "INTEGER"), PAIRS, lift_by(1)),
    Case(Merge.MIN_BY, ("INTEGER", "INTEGER", "INTEGER"), PAIRS, lift_by(-1)),
    Case(Merge.MAX_BY, ("TEXT", "INTEGER", "INTEGER"), OBJECTS, lift_by(1)),
    Case(Merge.MIN_BY, ("BLOB", "INTEGER", "INTEGER"), BYTES, lift_by(-1)),
    Case(Merge.HLL, ("BLOB",), st.integers(0, 500), lift_sketch, same_finish(Merge.HLL)),
    Case(Merge.KLL, ("BLOB",), DOUBLES, lift_kll, same_finish(Merge.KLL, 0.5, 1)),
    Case(Merge.KLL, ("blob",), DOUBLES, lift_kll, same_finish(Merge.KLL, 0.9, 0)),
    Case(Merge.TOP_K, ("BLOB",), SMALL, lift_top_k, same_finish(Merge.TOP_K, 3, "BIGINT")),
    Case(Merge.COUNT_MIN, ("BLOB",), SMALL, lift_count_min, same_finish(Merge.COUNT_MIN, "37")),
    Case(Merge.COLLECT_LIST, ("TEXT",), TEXTS, lift_list, same_finish(Merge.COLLECT_LIST)),
    Case(Merge.COLLECT_SET, ("TEXT",), SMALL, lift_set("BIGINT"), same_finish(Merge.COLLECT_SET)),
    Case(Merge.COLLECT_SET, ("text",), TEXTS, lift_set("STRING"), same_finish(Merge.COLLECT_SET)),
    Case(
        Merge.COLLECT_SET,
        ("Text",),
        st.sampled_from(["NaN", -1.5, 0.0, 5e-324, 2.0]),
        lift_set("DOUBLE", nan_last),
        same_finish(Merge.COLLECT_SET),
    ),
    Case(
        Merge.COLLECT_SET,
        ("tExt",),
        st.lists(st.none() | SMALL, max_size=2),
        lift_set("ARRAY<INT>", nulls_first),
        same_finish(Merge.COLLECT_SET),
    ),
    Case(Merge.DECIMAL_SUM, ("TEXT",), MONEY, lift_decimals, same_decimals),
    Case(Merge.IDS, ("BLOB",), BIGINTS | SMALL, lift_ids, same_finish(Merge.IDS)),
    Case(
        Merge.PAIR,
        ("TEXT",),
        st.tuples(EIGHTHS, EIGHTHS),
        lift_powers((1, 1), (2, 0), (0, 2)),
        same_pairs,
    ),
    Case(
        Merge.SHAPE,
        ("TEXT",),
        st.tuples(EIGHTHS),
        lift_powers((2,), (3,), (4,)),
        same_numbers(Merge.SHAPE, "skewness", "kurtosis"),
    ),
]
every_case = pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case.merge}-{case.storages[0].lower()}"
)


def test_every_merge_has_a_case() -> None:
    assert {case.merge for case in CASES} | {Merge.COUNTED} == set(Merge)


def test_a_sum_of_decimals_is_exact_beyond_the_digits_of_its_type() -> None:
    high = merge_states(Merge.DECIMAL_SUM, ["99E36", "99E36", "-99E36"])
    low = merge_states(Merge.DECIMAL_SUM, ["0.25", "0.25"])
    assert finish_state(Merge.DECIMAL_SUM, high, 38, 0) == "9" * 2 + "0" * 36
    assert finish_state(Merge.DECIMAL_SUM, "1E3", 38, 2, None, low) == "0" * 32 + "1000.50"
    assert finish_state(Merge.DECIMAL_SUM, "198E36", 38, 0) is None
    assert finish_state(Merge.DECIMAL_SUM, "198E36", 38, 6, 3) is None


def test_every_merge_is_either_plain_sql_or_a_state() -> None:
    plain = {m for m in Merge if "merge_" not in merge_sql(plan_of(case_of(m)), "SELECT 1")}
    assert plain | set(STATES) == set(Merge)
    assert not plain & set(STATES)


def case_of(merge: Merge) -> Case:
    counted = Case(Merge.COUNTED, ("INTEGER",), NUMBERS, lift_sum)
    return next((case for case in CASES if case.merge is merge), counted)


def plan_of(case: Case) -> ViewPlan:
    columns = tuple(f"p0_{n}" for n in range(len(case.storages)))
    storages = tuple(storage.upper() for storage in case.storages)
    partial = PartialPlan(case.merge, columns, storages, ())
    key = KeyPlan("k0", "k", "STRING", "k")
    return ViewPlan("v", "mergeable", "", (), keys=(key,), partials=(partial,))


def two_by_two(case: Case, partials: Sequence[Row]) -> Row:
    """The partials of one key, each merged with what came of those before it."""
    found = partials[0]
    for partial in partials[1:]:
        found = all_at_once(case, [found, partial], group=0)
    return found


def all_at_once(case: Case, partials: Sequence[Row], group: int = 1) -> Row:
    """The first partial in the generation, the others in groups from this one on; another key
    beside them.
    """
    plan = plan_of(case)
    rows = [("k", "k", *p, group and n and group + n - 1) for n, p in enumerate(partials)]
    rows += [("other", "other", *partials[0], group)]
    schema = stored_schema(plan).append(pa.field(GROUP, pa.int64()))
    pairs = zip(schema, zip(*rows, strict=True), strict=True)
    table = pa.table([pa.array(values, field.type) for field, values in pairs], schema=schema)
    columns = ", ".join(columns_of(plan)[1:])
    sql = f"SELECT {columns} FROM ({merge_sql(plan, 'SELECT * FROM stored')}) WHERE k0 = 'k'"
    [found] = run(sql, {"stored": table}).to_pylist()
    return tuple(found.values())


def pieces_of(data: st.DataObject, case: Case) -> tuple[list[Any], list[list[Any]]]:
    """Events of one key, each in one of up to five pieces; a piece may be empty."""
    events = data.draw(st.lists(case.events, max_size=12), "events")
    if case.merge in PLACED:
        events = [(*(e if isinstance(e, tuple) else (e,)), n) for n, e in enumerate(events)]
    homes = data.draw(
        st.lists(st.integers(0, 4), min_size=len(events), max_size=len(events)), "pieces"
    )
    return events, [
        [e for e, home in zip(events, homes, strict=True) if home == n] for n in range(5)
    ]


def nothing(case: Case) -> Row:
    return (None,) * len(case.storages)


@every_case
@settings(max_examples=examples(20, 500), print_blob=True)
@given(data=st.data())
def test_pieces_merge_to_the_whole_in_any_order(case: Case, data: st.DataObject) -> None:
    events, pieces = pieces_of(data, case)
    order = data.draw(st.permutations(pieces), "order")
    partials, whole = [case.lift(piece) for piece in order], case.lift(events)
    assert case.same(whole, two_by_two(case, partials))
    assert case.same(whole, all_at_once(case, partials))


@every_case
@settings(max_examples=examples(10), print_blob=True)
@given(data=st.data())
def test_it_does_not_matter_which_are_merged_first(case: Case, data: st.DataObject) -> None:
    events, (one, two, three, *rest) = pieces_of(data, case)
    last = [event for piece in rest for event in piece]
    a, b, c, d = (case.lift(piece) for piece in (one, two, three, last))
    left = two_by_two(case, [two_by_two(case, [a, b]), two_by_two(case, [c, d])])
    right = two_by_two(case, [a, two_by_two(case, [b, two_by_two(case, [c, d])])])
    assert case.same(case.lift(events), left)
    assert case.same(case.lift(events), right)


@every_case
@settings(max_examples=examples(10), print_blob=True)
@given(data=st.data())
def test_null_is_zero(case: Case, data: st.DataObject) -> None:
    events, _ = pieces_of(data, case)
    partial, zero = case.lift(events), nothing(case)
    for partials in ([zero, partial], [partial, zero], [zero, partial, zero]):
        assert case.same(partial, two_by_two(case, partials))
        assert case.same(partial, all_at_once(case, partials))


@settings(max_examples=examples(20, 500), print_blob=True)
@given(value=st.floats(-1e150, 1e150), counts=st.lists(st.integers(1, 9), min_size=2, max_size=6))
def test_equal_values_have_no_spread_however_they_are_cut(value: float, counts: list[int]) -> None:
    case = case_of(Merge.MOMENTS)
    partials = [(count, value, 0.0) for count in counts]
    assert two_by_two(case, partials) == (sum(counts), value, 0.0)
    assert all_at_once(case, partials) == (sum(counts), value, 0.0)


@given(numbers=st.lists(st.none() | st.integers(0, 10**9), min_size=2, max_size=5))
def test_counted_numbers_add_up_until_speed_has_a_row_beside_them(
    numbers: list[int | None],
) -> None:
    case, known = case_of(Merge.COUNTED), [number for number in numbers if number is not None]
    partials = [(number,) for number in numbers]
    assert all_at_once(case, partials, group=0) == (sum(known) if known else None,)
    assert all_at_once(case, partials) == (None,)
