"""An answer as a table: of Arrow, and so of Parquet, pandas and CSV.

In every tabular form a window `hour` is the two columns `hour_start` and `hour_end`, as in the
store's SQL views and in sinks; also the window of an ad-hoc query, which Spark calls a struct.
Columns have the types of the answer, also without rows or with only nulls. The answer without its
rows is JSON in the table's metadata under `headrace`. tests/serving/test_answer_table.py checks it,
tests/api/test_sql_routes.py that all forms agree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa

from headrace.serving.answer import Answer
from headrace.serving.value_types import TIMESTAMP, value_type

EDGES = ("start", "end")
_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


def typed_rows(answer: Answer) -> list[dict[str, Any]]:
    """The rows with each value as the Python type of its column."""
    kinds = {name: value_type(info.type) for name, info in answer.columns.items()}
    return [
        {name: kind.value(row.get(name)) for name, kind in kinds.items()} for row in answer.rows
    ]


def column_names(answer: Answer) -> list[str]:
    """The names of the table's columns."""
    return [
        part
        for name, info in answer.columns.items()
        for part in (
            [f"{name}_{edge}" for edge in EDGES] if value_type(info.type).window else [name]
        )
    ]


def flat_rows(answer: Answer) -> Iterator[list[Any]]:
    """The JSON values of each row, in the order of `column_names`."""
    windows = {name: value_type(info.type).window for name, info in answer.columns.items()}
    for row in answer.rows:
        yield [
            value
            for name, window in windows.items()
            for value in (_edges(row[name]) if window else (row[name],))
        ]


def _edges(window: dict[str, Any] | None) -> tuple[Any, ...]:
    return tuple(window[edge] if window else None for edge in EDGES)


def csv_text(text: str) -> str:
    """Escapes a text that a spreadsheet would evaluate as a formula.

    >>> [csv_text(text) for text in ("=1+1", "-1.5", "-1+1", "a=b")]
    ["'=1+1", '-1.5', "'-1+1", 'a=b']
    """
    formula = _FORMULA.match(text) and not _NUMBER.fullmatch(text)
    return f"'{text}" if formula else text


def arrow_table(answer: Answer) -> Any:
    """The answer as an Arrow table."""
    arrays = list(_arrays(answer))
    names = column_names(answer)
    schema = pa.schema([(name, array.type) for name, array in zip(names, arrays, strict=True)])
    metadata = {"headrace": json.dumps(answer_metadata(answer))}
    return pa.Table.from_arrays(arrays, schema=schema.with_metadata(metadata))


def answer_metadata(answer: Answer) -> dict[str, Any]:
    """An answer without its rows: `as_of`, and the exactness of its columns."""
    metadata: dict[str, Any] = msgspec.to_builtins(answer)
    del metadata["rows"]
    return metadata


def _arrays(answer: Answer) -> Iterator[Any]:
    rows = typed_rows(answer)
    for name, info in answer.columns.items():
        kind, values = value_type(info.type), [row[name] for row in rows]
        if not kind.window:
            yield pa.array(values, kind.arrow)
            continue
        for edge in EDGES:
            edges = [getattr(window, edge) if window else None for window in values]
            yield pa.array(edges, TIMESTAMP.arrow)
