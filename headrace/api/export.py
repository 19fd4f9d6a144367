"""An answer as a file: CSV as RFC 4180 has it, or Parquet.

In CSV a window is two columns, its start and its end, NULL is empty, and lists are JSON. In Parquet
values have the types of the answer. What an answer says beside its rows is in headers.
tests/api/test_querying.py reads both back.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import msgspec
from starlette.responses import Response

from headrace.compile.plan import WINDOW
from headrace.core.time import from_iso
from headrace.serving.answer import Answer

CSV, PARQUET = "text/csv", "application/vnd.apache.parquet"
AS_OF, TRUNCATED = "X-Headrace-As-Of", "X-Headrace-Truncated"
_EDGES = ("start", "end")


def wanted_form(accept: str) -> Callable[[Answer], Response] | None:
    """The form that an Accept header asks for first; None for JSON."""
    for part in accept.split(","):
        media = part.partition(";")[0].strip().lower()
        if media in _FORMS:
            return _FORMS[media]
        if media in {"application/json", "*/*", "application/*"}:
            return None
    return None


def _headers(answer: Answer) -> dict[str, str]:
    return {
        AS_OF: msgspec.json.encode(answer.as_of).decode(),
        TRUNCATED: str(answer.truncated).lower(),
    }


# CSV


def csv_response(answer: Answer) -> Response:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(_names(answer))
    for row in answer.rows:
        writer.writerow(_cells(answer, row))
    return Response(text.getvalue(), headers=_headers(answer), media_type=CSV)


def _names(answer: Answer) -> Iterator[str]:
    for name, column in answer.columns.items():
        yield from (f"{name}_{edge}" for edge in _EDGES) if column.type == WINDOW else (name,)


def _cells(answer: Answer, row: dict[str, Any]) -> Iterator[str]:
    for name, column in answer.columns.items():
        value = row[name]
        if column.type == WINDOW:
            yield from (_cell((value or {}).get(edge)) for edge in _EDGES)
        else:
            yield _cell(value)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


# Parquet


def parquet_response(answer: Answer) -> Response:
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {
        name: _array([row[name] for row in answer.rows], column.type.upper())
        for name, column in answer.columns.items()
    }
    file = io.BytesIO()
    pq.write_table(pa.table(arrays), file)
    return Response(file.getvalue(), headers=_headers(answer), media_type=PARQUET)


def _array(values: list[Any], type: str) -> Any:
    """A column with its type; as text where Arrow has no such type."""
    import pyarrow as pa

    plain = {
        "STRING": pa.string(), "BOOLEAN": pa.bool_(), "INT": pa.int32(), "BIGINT": pa.int64(),
        "DOUBLE": pa.float64(), "FLOAT": pa.float64(),
    }  # fmt: skip
    moment = pa.timestamp("us", "UTC")
    if type in plain:
        return pa.array(values, plain[type])
    if type == "TIMESTAMP":
        return pa.array([_moment(value) for value in values], moment)
    if type == "DATE":
        return pa.array([date.fromisoformat(v) if v else None for v in values], pa.date32())
    if type == WINDOW:
        edges = [v and {edge: _moment(v[edge]) for edge in _EDGES} for v in values]
        return pa.array(edges, pa.struct([(edge, moment) for edge in _EDGES]))
    return pa.array([None if v is None else _cell(v) for v in values], pa.string())


def _moment(text: str | None) -> int | None:
    return None if text is None else from_iso(text)


_FORMS = {CSV: csv_response, PARQUET: parquet_response}
