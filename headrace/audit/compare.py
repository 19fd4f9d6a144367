"""When an answer and DuckDB's are the same.

Rows meet by the keys that the answer shows. Whole numbers, texts, lists and objects must be equal,
doubles to 1e-9 relative, and estimates of a value within six standard errors. An estimate whose
error is a share of something else is not compared, and the result says so.
tests/audit/test_oracle.py checks each kind of difference.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from headrace.compile.plan import WINDOW, OutputPlan, ViewPlan
from headrace.core.schema import nested
from headrace.core.stored_value import shown
from headrace.serving.store import AuditResult

EXAMPLES = 5
ERRORS_MAX = 6  # standard errors that an estimate may be off


def compare(view: ViewPlan, answer: Sequence[Any], expected: Sequence[Any]) -> AuditResult:
    """Count the rows that are on one side only or differ."""
    ours = _by_key(view, [narrowed(view, row) for row in answer])
    theirs = _by_key(view, [_as_told(view, narrowed(view, row)) for row in expected])
    found = [
        sentence
        for key in {**ours, **theirs}
        for pair in zip_longest(ours.get(key, ()), theirs.get(key, ()))
        if (sentence := _difference(view, *pair))
    ]
    return AuditResult(view.name, len(expected), len(found), tuple(found[:EXAMPLES]), _note(view))


def _note(view: ViewPlan) -> str:
    rough = [output.name for output in view.outputs if not _comparable(output)]
    return f"not compared, being estimates: {', '.join(rough)}" if rough else ""


def _comparable(output: OutputPlan) -> bool:
    """Whether the error of an estimate, if it is one, tells how far values may be apart."""
    return output.estimate is None or output.estimate.of == "value"


def _by_key(view: ViewPlan, rows: Sequence[Any]) -> dict[tuple[Any, ...], list[Any]]:
    """The rows of each key; where the answer does not show every key, several in the order of
    their values."""
    keys = [n for n, output in enumerate(view.outputs) if output.key]
    # Estimates come last, since rows that differ only in those must still find each other.
    order = sorted(range(len(view.outputs)), key=lambda n: view.outputs[n].estimate is not None)
    found: dict[tuple[Any, ...], list[Any]] = {}
    for row in sorted(rows, key=lambda row: [(row[n] is None, row[n] or 0) for n in order]):
        found.setdefault(tuple(row[n] for n in keys), []).append(row)
    return found


def narrowed(view: ViewPlan, row: Sequence[Any]) -> tuple[Any, ...]:
    """The row with a window's two edges as one value, and what follows the outputs."""
    values, narrow = iter(row), []
    for output in view.outputs:
        value = next(values)
        if output.type == WINDOW:
            value = (value, next(values))
        elif nested(output.type) and isinstance(value, str):
            value = _list_text(value)
        narrow.append(value)
    return (*narrow, *values)


def _list_text(value: str) -> str:
    """The JSON of a list, whether or not it was cut."""
    read = json.loads(value)
    return json.dumps(read.get("cut", read) if isinstance(read, dict) else read)


def _as_told(view: ViewPlan, row: Sequence[Any]) -> tuple[Any, ...]:
    """DuckDB's row with lists and objects as JSON, as an answer shows them."""
    told = []
    for output, value in zip(view.outputs, row, strict=True):
        if isinstance(value, list):
            element = output.type.removeprefix("ARRAY<").removesuffix(">")
            value = json.dumps([shown(element, item) for item in value])
        told.append(json.dumps(value) if isinstance(value, dict) else value)
    return tuple(told)


def _difference(
    view: ViewPlan, ours: Sequence[Any] | None, theirs: Sequence[Any] | None
) -> str | None:
    if ours is None or theirs is None:
        shown, missing = (
            ours or theirs,
            "DuckDB has it" if ours is None else "DuckDB does not have it",
        )
        return f"{_shown(view, shown)}: {missing}"
    for n, output in enumerate(view.outputs):
        estimate = output.estimate
        rough = estimate and (estimate.when == "always" or ours[-1])
        tolerance = ERRORS_MAX * estimate.error if estimate and rough else None
        if _comparable(output) and not _equal(ours[n], theirs[n], tolerance):
            return f"{_shown(view, ours)}: {output.name} is {ours[n]}, DuckDB says {theirs[n]}"
    return None


def _equal(ours: Any, theirs: Any, tolerance: float | None) -> bool:
    if ours is None or theirs is None or ours == theirs:
        return ours is theirs or bool(ours == theirs)
    if tolerance is not None:
        return bool(abs(ours - theirs) <= max(1.0, tolerance * theirs))
    if isinstance(ours, float) or isinstance(theirs, float):
        return bool(abs(ours - theirs) <= 1e-9 * max(abs(ours), abs(theirs), 1e-3))
    return bool(ours == theirs)


def _shown(view: ViewPlan, row: Sequence[Any] | None) -> str:
    values = zip(view.outputs, row or (), strict=False)
    return (
        ", ".join(f"{output.name}={value}" for output, value in values if output.key) or "the row"
    )
