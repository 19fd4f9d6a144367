"""An answer as a file: CSV (RFC 4180) or Parquet.

Both have the columns of the answer's Arrow table (headrace/serving/answer_table.py), Parquet also
its types. In CSV, NULL is empty, lists are JSON, and text that a spreadsheet would evaluate as a
formula gets a leading apostrophe, because the sender of events is not trusted by the reader of the
file. Numbers are unchanged. The metadata of an answer is in headers. tests/api/test_sql_routes.py
reads both back.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

import msgspec
from starlette.responses import Response

from headrace.serving.answer import Answer

CSV, PARQUET = "text/csv", "application/vnd.apache.parquet"
AS_OF, TRUNCATED = "X-Headrace-As-Of", "X-Headrace-Truncated"


def response_format(accept: str) -> Callable[[Answer], Response] | None:
    """The first supported format of an Accept header; None for JSON."""
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


def csv_response(answer: Answer) -> Response:
    from headrace.serving.answer_table import column_names, csv_text, flat_rows

    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(map(csv_text, column_names(answer)))
    writer.writerows([csv_text(_cell(value)) for value in row] for row in flat_rows(answer))
    return Response(text.getvalue(), headers=_headers(answer), media_type=CSV)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def parquet_response(answer: Answer) -> Response:
    import pyarrow.parquet as pq

    from headrace.serving.answer_table import arrow_table

    file = io.BytesIO()
    pq.write_table(arrow_table(answer), file)
    return Response(file.getvalue(), headers=_headers(answer), media_type=PARQUET)


_FORMS = {CSV: csv_response, PARQUET: parquet_response}
