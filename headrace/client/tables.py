"""An answer as an Arrow table or a pandas frame.

Columns have the types of the answer, also when no row or only nulls came. A window `hour` becomes
the columns `hour_start` and `hour_end`, as in the store. In pandas, whole numbers and booleans are
the kinds that have nulls, so a number of 2^53 and more stays itself. What the answer speaks for
goes along: as JSON in the table's metadata under `headrace`, and in the frame's `attrs`.
tests/client/test_tables.py checks both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa

from headrace.client.kinds import MOMENT, kind_of
from headrace.core.errors import Unavailable
from headrace.serving.answer import Answer


def typed_rows(answer: Answer) -> list[dict[str, Any]]:
    """The rows with each value as its column's type says."""
    kinds = {name: kind_of(info.type) for name, info in answer.columns.items()}
    return [
        {name: kind.value(row.get(name)) for name, kind in kinds.items()} for row in answer.rows
    ]


def arrow_table(answer: Answer) -> Any:
    """The answer as a table of Arrow."""
    columns = list(_columns(answer))
    schema = pa.schema([(name, array.type) for name, array in columns])
    said = {"headrace": json.dumps(spoken_for(answer))}
    return pa.Table.from_arrays([array for _, array in columns], schema=schema.with_metadata(said))


def pandas_frame(answer: Answer) -> Any:
    """The answer as a frame of pandas."""
    try:
        import pandas as pd
    except ImportError as error:
        raise Unavailable(
            "to_pandas needs pandas, which is not installed here",
            hint="install it with `pip install pandas`, or use to_arrow() or rows().",
        ) from error
    whole = {
        getattr(pa, f"int{bits}")(): getattr(pd, f"Int{bits}Dtype")() for bits in (8, 16, 32, 64)
    }
    kinds = {**whole, pa.bool_(): pd.BooleanDtype()}
    frame = arrow_table(answer).to_pandas(types_mapper=kinds.get)
    frame.attrs = spoken_for(answer)
    return frame


def spoken_for(answer: Answer) -> dict[str, Any]:
    """What an answer speaks for, and how exact its columns are."""
    said: dict[str, Any] = msgspec.to_builtins(answer)
    del said["rows"]
    return said


def _columns(answer: Answer) -> Iterator[tuple[str, Any]]:
    rows = typed_rows(answer)
    for name, info in answer.columns.items():
        kind, values = kind_of(info.type), [row[name] for row in rows]
        if not kind.window:
            yield name, pa.array(values, kind.arrow)
            continue
        for edge in ("start", "end"):
            edges = [getattr(window, edge) if window else None for window in values]
            yield f"{name}_{edge}", pa.array(edges, MOMENT.arrow)
