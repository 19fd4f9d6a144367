"""An answer: rows, and the progress that they reflect.

Law: an answer carries `as_of`, the generation, position and watermark of each stream behind it,
read in the same transaction as the rows, and says for each column whether it is exact or how large
its error is. tests/serving/test_answers.py checks that rows and `as_of` never come from different
transactions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import msgspec

from headrace.certified.relation import AnswerColumn
from headrace.certified.types import VOID
from headrace.compile.plan import WINDOW, OutputPlan
from headrace.core.schema import Type, nested
from headrace.core.shown_value import writer
from headrace.core.time import iso
from headrace.serving.store import StreamState


class Sampled(msgspec.Struct, frozen=True):
    """Speed could not keep up: of the events after the boundary it has processed this share."""

    share: float
    shed: int  # events that it has shed; values are not scaled up for them


class AsOf(msgspec.Struct, frozen=True, omit_defaults=True):
    """The progress of one stream at the time of the answer."""

    generation: int
    boundary: list[int]
    position: list[int]
    watermark: str | None
    committed_at: str | None
    age_ms: int | None
    provisional: bool = False  # whether some rows are wrong until the next generation
    sampled: Sampled | None = None
    tables: dict[str, str] = {}  # the versions of the tables that new events are joined with
    set_aside: int = 0  # keys whose search for a pattern was given up: matches may be missing
    behind: int = 0  # events in the log that the answer does not contain yet


class ColumnInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known about a column of the answer."""

    type: str
    exact: bool
    error: float | None = None  # one standard error or a bound, as a share of `error_of`
    error_of: str = "value"  # "value", "rank" or "events"
    cut: bool = False  # whether a list behind the column was cut at its limit
    key: bool = False  # whether it is a key of the rows


class Windows(msgspec.Struct, frozen=True):
    """How the windows of a view follow each other."""

    every_ms: float  # between the starts of two windows
    empty: dict[str, float | int]  # values of a window without a row; other columns are NULL


class Answer(msgspec.Struct, frozen=True):
    """Rows as objects, with the progress that they reflect."""

    rows: list[dict[str, Any]]
    as_of: dict[str, AsOf]
    columns: dict[str, ColumnInfo]
    truncated: bool = False
    total: int | None = None  # how many rows match; known if an order was requested
    windows: Windows | None = None


def as_of(
    states: Iterable[StreamState],
    now_us: int,
    provisional: Container[str] = (),
    tables: Mapping[str, dict[str, str]] | None = None,
    set_aside: Mapping[str, int] | None = None,
) -> dict[str, AsOf]:
    """`as_of` of each stream; `provisional` names the streams with provisional answers, `tables`
    has the tables each was joined with, `set_aside` how many keys of patterns are not searched.
    """
    return {
        state.plan.name: AsOf(
            state.generation,
            list(state.boundary.offsets),
            list(state.position.offsets),
            iso(mark) if (mark := state.reached.watermark_us) is not None else None,
            iso(state.committed_at) if state.committed_at else None,
            max(0, now_us - state.committed_at) // 1000 if state.committed_at else None,
            state.plan.name in provisional,
            sampled(state),
            (tables or {}).get(state.plan.name, {}),
            (set_aside or {}).get(state.plan.name, 0),
        )
        for state in states
    }


def sampled(state: StreamState) -> Sampled | None:
    """The sampling of a stream; None if speed has shed no events after the boundary."""
    if not state.shed:
        return None
    return Sampled(round(1 - state.shed / (state.position - state.boundary), 6), state.shed)


def rows_as_objects(
    rows: Sequence[Sequence[Any]], columns: Sequence[AnswerColumn | OutputPlan]
) -> list[dict[str, Any]]:
    """Rows in storage form as JSON objects."""
    if not rows:
        return []
    stored = iter(zip(*rows, strict=True))
    names, shown = [c.name for c in columns], [_shown(c.type, stored) for c in columns]
    if not names:
        return [{} for _ in rows]
    return [dict(zip(names, row, strict=True)) for row in zip(*shown, strict=True)]


def _shown(type: str, stored: Iterator[Sequence[Any]]) -> Iterable[Any]:
    """The values of a column; a window has two stored columns."""
    if type == WINDOW:
        edges = _shown("TIMESTAMP", stored), _shown("TIMESTAMP", stored)
        return [{"start": start, "end": end} for start, end in zip(*edges, strict=True)]
    values = next(stored)
    if type == VOID:
        return [None] * len(values)
    show: Callable[[Any], Any] = json.loads if nested(type) else writer(Type.of(type))
    return [None if value is None else show(value) for value in values]


def column_info(
    columns: Sequence[AnswerColumn], cut: Set[str], fresh: bool, partial: bool = False
) -> dict[str, ColumnInfo]:
    """The exactness of each column. An estimate of speed is exact if batch covers all rows; if
    events are missing (`partial`), only keys are exact. `cut` names lists that were cut.
    """
    found = {column.name: _info(column, cut, fresh) for column in columns}
    if not partial:
        return found
    return {
        name: info if info.key else msgspec.structs.replace(info, exact=False)
        for name, info in found.items()
    }


def _info(column: AnswerColumn, cut: Set[str], fresh: bool) -> ColumnInfo:
    estimate = column.estimate
    if estimate and estimate.when == "speed" and not fresh:
        estimate = None
    return ColumnInfo(
        column.type,
        estimate is None,
        estimate.error if estimate else None,
        estimate.of if estimate else "value",
        bool(cut & column.lists),
        column.key,
    )
