"""Answers as Arrow and pandas."""

from __future__ import annotations

import builtins
import json
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from headrace.client.tables import arrow_table, pandas_frame, typed_rows
from headrace.core.errors import Unavailable

from .conftest import ANSWER, MOMENT


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


def test_a_frame_keeps_large_numbers_beside_nulls() -> None:
    frame = pandas_frame(ANSWER)
    assert list(frame.columns) == ["url", "hour_start", "hour_end", "hits", "users"]
    assert frame["hits"][0] == 2**60
    assert frame["hits"].isna().tolist() == [False, True]
    assert str(frame["hour_start"].dtype) == "datetime64[us, UTC]"
    assert frame["hour_end"].isna().tolist() == [False, True]
    assert frame.attrs["as_of"]["clicks"]["watermark"] == MOMENT


def test_without_pandas_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        if name == "pandas":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(Unavailable, match="to_pandas needs pandas") as raised:
        pandas_frame(ANSWER)
    assert "to_arrow()" in (raised.value.hint or "")
    assert typed_rows(ANSWER)[0]["hits"] == 2**60
