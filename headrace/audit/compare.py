"""Compares an answer with DuckDB's.

Rows are matched by the keys that the answer shows. Whole numbers and texts must be equal, doubles
to 1e-9 relative at any depth (two engines differ in the last bits of a cosine, and a key or an
element of a list may be one), and estimates of a value within six standard errors. An estimate
whose error is a share of something else is not compared, nor are rows of keys that one engine takes
for one and the other for two; the result says so. tests/audit/test_compare.py checks each kind.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from datetime import UTC
from decimal import Decimal
from itertools import zip_longest
from typing import Any

from headrace.compile.plan import WINDOW, OutputPlan, ViewPlan
from headrace.core.json_value import timestamp
from headrace.core.schema import Type, nested
from headrace.core.shown_value import shown
from headrace.core.storage import NAN
from headrace.serving.store import AuditResult

EXAMPLES = 5
DOUBLES = ("FLOAT", "DOUBLE")
ERRORS_MAX = 6  # standard errors that an estimate may be off


def compare(view: ViewPlan, answer: Sequence[Any], expected: Sequence[Any]) -> AuditResult:
    """Count the rows that are on one side only or differ."""
    told = [narrowed(view, row) for row in answer]
    second = [_as_told(view, narrowed(view, row)) for row in expected]
    near = [_near(output, n, (*told, *second)) for n, output in enumerate(view.outputs)]
    ours, theirs = _by_key(view, told, near), _by_key(view, second, near)
    found, apart = list[str](), 0
    for key in {**ours, **theirs}:
        one, other = ours.get(key, ()), theirs.get(key, ())
        if one and other and len(one) != len(other) and _rounded_apart(view, (*one, *other)):
            apart += 1
            continue
        pairs = zip_longest(one, other)
        found += [sentence for pair in pairs if (sentence := _difference(view, *pair))]
    examples, note = tuple(found[:EXAMPLES]), _note(view, apart)
    return AuditResult(view.name, len(expected), len(found), examples, note, len(found))


def _near(output: OutputPlan, n: int, rows: Iterable[Sequence[Any]]) -> dict[float, float]:
    """Of each double of a column the least that it is close to, by neighbours."""
    if output.type not in DOUBLES:
        return {}
    found: dict[float, float] = {}
    before = least = math.nan
    for value in sorted({row[n] for row in rows if row[n] is not None and not _is_nan(row[n])}):
        least = least if _close(before, value) else value
        found[value] = least
        before = value
    return found


def _rounded_apart(view: ViewPlan, rows: Iterable[Sequence[Any]]) -> bool:
    """Whether rows of one key have different doubles in it."""
    keys = [n for n, output in enumerate(view.outputs) if output.key and output.type in DOUBLES]
    return len({tuple(_named(row[n]) for n in keys) for row in rows}) > 1


def _note(view: ViewPlan, apart: int) -> str:
    rough = [output.name for output in view.outputs if not comparable(output)]
    notes = []
    if rough:
        notes.append(f"columns not compared, because they are estimates: {', '.join(rough)}")
    if apart:
        notes.append(f"rows not compared, because a key differs in its last bits: {apart:,}")
    return "; ".join(notes)


def comparable(output: OutputPlan) -> bool:
    """Whether the error of an estimate, if it is one, bounds the difference of values."""
    return output.estimate is None or output.estimate.of == "value"


def _by_key(
    view: ViewPlan, rows: Sequence[Any], near: Sequence[dict[float, float]]
) -> dict[tuple[Any, ...], list[Any]]:
    """The rows of each key; where the answer does not show every key, several in the order of
    their values. Doubles that are close are one, and so is NaN."""

    def value(row: Any, n: int) -> Any:
        return near[n].get(row[n], _named(row[n]))

    def rank(row: Any, n: int) -> Any:
        found = value(row, n)
        absent = found is None or found == NAN
        return found is None, found == NAN, 0 if absent else found

    # Lists of doubles are compared after rows were matched by the rest, such as the offset of an
    # alert.
    meets = [output.key and not _of_doubles(output) for output in view.outputs]
    keys = [n for n, each in enumerate(meets) if each]
    # Estimates come last, since rows that differ only in those must still be matched.
    order = sorted(range(len(view.outputs)), key=lambda n: view.outputs[n].estimate is not None)
    found: dict[tuple[Any, ...], list[Any]] = {}
    for row in sorted(rows, key=lambda row: [rank(row, n) for n in order]):
        found.setdefault(tuple(value(row, n) for n in keys), []).append(row)
    return found


def _of_doubles(output: OutputPlan) -> bool:
    return nested(output.type) and Type.of(output.type).has(*DOUBLES)


def narrowed(view: ViewPlan, row: Sequence[Any]) -> tuple[Any, ...]:
    """The row with a window's two edges as one value, and what follows the outputs."""
    values, narrow = iter(row), []
    for output in view.outputs:
        value = next(values)
        if output.type == WINDOW:
            value = (value, next(values))
        narrow.append(value)
    return (*narrow, *values)


def _as_told(view: ViewPlan, row: Sequence[Any]) -> tuple[Any, ...]:
    """DuckDB's row with lists and objects as JSON, as an answer shows them."""
    return tuple(
        json.dumps(_told(Type.of(output.type), value))
        if nested(output.type) and value is not None
        else value
        for output, value in zip(view.outputs, row, strict=True)
    )


def _told(type: Type, value: Any) -> Any:
    """A value of DuckDB's within a list or an object, as an answer shows it."""
    if value is None:
        return None
    match type.name:
        case "ARRAY":
            return [_told(type.element, item) for item in value]
        case "MAP":
            return {_name(type.key, k): _told(type.element, v) for k, v in value.items()}
        case "STRUCT":
            return {field.name: _told(field.type, value[field.name]) for field in type.fields}
        case "TIMESTAMP":
            return timestamp(value if value.tzinfo else value.replace(tzinfo=UTC))
        case "TIMESTAMP_NTZ" | "DATE":
            return value.isoformat()
    return shown(type, value)


def _name(type: Type, key: Any) -> str:
    told = _told(type, key)
    return str(told).lower() if isinstance(told, bool) else str(told)


def _difference(
    view: ViewPlan, ours: Sequence[Any] | None, theirs: Sequence[Any] | None
) -> str | None:
    if ours is None or theirs is None:
        shown, missing = (
            ours or theirs,
            "found only by DuckDB" if ours is None else "not found by DuckDB",
        )
        return f"{_shown(view, shown)}: {missing}"
    for n, output in enumerate(view.outputs):
        estimate = output.estimate
        rough = estimate and (estimate.when == "always" or ours[-1])
        tolerance = ERRORS_MAX * estimate.error if estimate and rough else None
        read = _read if nested(output.type) or output.type == "VARIANT" else _plain
        if comparable(output) and not values_equal(read(ours[n]), read(theirs[n]), tolerance):
            values = f"{output.name} is {ours[n]}, but DuckDB computed {theirs[n]}"
            return f"{_shown(view, ours)}: {values}"
    return None


def _plain(value: Any) -> Any:
    return value


def _read(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def values_equal(ours: Any, theirs: Any, tolerance: float | None = None) -> bool:
    """Whether two values are the same; `tolerance` is that of an estimate."""
    if ours is None or theirs is None or ours == theirs:
        return ours is theirs or bool(ours == theirs)
    if tolerance is not None:
        return bool(abs(ours - theirs) <= max(1.0, tolerance * theirs))
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(values_equal, ours, theirs))
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(values_equal(ours[k], theirs[k]) for k in ours)
    if _is_nan(ours) or _is_nan(theirs):
        return _is_nan(ours) and _is_nan(theirs)
    if isinstance(ours, Decimal) and isinstance(theirs, float):
        # DuckDB's mean of decimals is a double, which has not been rounded to the last digit.
        step = 10.0 ** int(ours.as_tuple().exponent)
        return abs(float(ours) - theirs) <= 0.5 * step + 1e-12 * max(abs(theirs), step)
    numbers = isinstance(ours, int | float) and isinstance(theirs, int | float)
    floats = isinstance(ours, float) or isinstance(theirs, float)
    return numbers and floats and _close(ours, theirs)


def _named(value: Any) -> Any:
    """NaN as a text, because two of them are not equal."""
    return NAN if _is_nan(value) else value


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


def _shown(view: ViewPlan, row: Sequence[Any] | None) -> str:
    values = zip(view.outputs, row or (), strict=False)
    return (
        ", ".join(f"{output.name}={value}" for output, value in values if output.key) or "the row"
    )
