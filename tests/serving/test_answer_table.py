"""Answers as tables of Arrow."""

from __future__ import annotations

import json

import msgspec
import pyarrow as pa

from headrace.serving.answer_table import arrow_table, typed_rows
from tests.client.conftest import ANSWER


def test_whole_numbers_stay_whole() -> None:
    assert typed_rows(ANSWER)[0]["hits"] == 2**60


def test_a_window_is_two_columns_and_an_empty_answer_has_types() -> None:
    fields = {
        "url": pa.string(),
        "hour_start": pa.timestamp("us", "UTC"),
        "hour_end": pa.timestamp("us", "UTC"),
        "hits": pa.int64(),
        "users": pa.int64(),
    }
    for answer in (ANSWER, msgspec.structs.replace(ANSWER, rows=[])):
        schema = arrow_table(answer).schema
        assert dict(zip(schema.names, schema.types, strict=True)) == fields


def test_a_table_says_what_it_speaks_for() -> None:
    said = json.loads(arrow_table(ANSWER).schema.metadata[b"headrace"])
    assert said["as_of"]["clicks"]["generation"] == 3
    assert said["columns"]["users"] == {"type": "BIGINT", "exact": False, "error": 0.0163}
