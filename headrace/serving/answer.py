"""An answer: rows, and what they speak for.

Law: an answer carries `as_of`, the generation, position and watermark of each stream behind it,
read in the same transaction as the rows, and says of each column whether it is exact or how large
its error is. tests/serving/test_answers.py checks that rows and `as_of` never come from different
transactions.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from headrace.compile.plan import WINDOW
from headrace.compile.translate import Result
from headrace.core.aggregate import HLL_ERROR
from headrace.core.time import DAY, iso
from headrace.serving.store import StreamState


class AsOf(msgspec.Struct, frozen=True):
    """How far one stream had come when the answer was given."""

    generation: int
    boundary: list[int]
    position: list[int]
    watermark: str | None
    committed_at: str | None
    age_ms: int | None
    provisional: bool = False  # an event came that only batch can count; true until it has
    tables: dict[str, str] = {}  # the versions of the tables that new events meet


class ColumnInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known about a column of the answer."""

    type: str
    exact: bool
    error: float | None = None  # one standard error, relative


class Answer(msgspec.Struct, frozen=True):
    """Rows as objects, with what they speak for."""

    rows: list[dict[str, Any]]
    as_of: dict[str, AsOf]
    columns: dict[str, ColumnInfo]
    truncated: bool = False


def as_of(
    states: Iterable[StreamState],
    now_us: int,
    provisional: Container[str] = (),
    tables: Mapping[str, dict[str, str]] | None = None,
) -> dict[str, AsOf]:
    """`as_of` of each stream; `provisional` names those whose answer is, `tables` has what each was
    joined with.
    """
    return {
        state.plan.name: AsOf(
            state.generation,
            list(state.boundary.offsets),
            list(state.position.offsets),
            iso(state.watermark) if state.watermark is not None else None,
            iso(state.committed_at) if state.committed_at else None,
            max(0, now_us - state.committed_at) // 1000 if state.committed_at else None,
            state.plan.name in provisional,
            (tables or {}).get(state.plan.name, {}),
        )
        for state in states
    }


def rows_as_objects(
    rows: Iterable[Sequence[Any]], results: Sequence[Result]
) -> list[dict[str, Any]]:
    """Rows in storage form as JSON objects."""
    objects = []
    for row in rows:
        values = iter(row)
        objects.append({result.name: _value(result.type, values) for result in results})
    return objects


def _value(type: str | None, values: Any) -> Any:
    value = next(values)
    if type == WINDOW:
        return {"start": _shown("TIMESTAMP", value), "end": _shown("TIMESTAMP", next(values))}
    return _shown(type, value)


def _shown(type: str | None, value: Any) -> Any:
    if value is None:
        return None
    if type == "TIMESTAMP":
        return iso(value)
    if type == "DATE":
        return iso(value * DAY)[:10]
    if type == "BOOLEAN":
        return bool(value)
    if type == "DOUBLE":
        return float(value)
    return value


def column_info(
    results: Sequence[Result], rows: Sequence[dict[str, Any]], fresh: bool
) -> dict[str, ColumnInfo]:
    """Exactness of each column; an estimate of speed is exact where batch covers all rows."""
    return {
        result.name: ColumnInfo(
            result.type or _seen_type(result.name, rows),
            not _estimated(result, fresh),
            HLL_ERROR if _estimated(result, fresh) else None,
        )
        for result in results
    }


def _estimated(result: Result, fresh: bool) -> bool:
    return result.estimate == "always" or (result.estimate == "speed" and fresh)


def _seen_type(name: str, rows: Sequence[dict[str, Any]]) -> str:
    value = next((row[name] for row in rows if row[name] is not None), None)
    return {int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN"}.get(type(value), "STRING")
