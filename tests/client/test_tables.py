"""Answers as pandas."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

from headrace.client.tables import pandas_frame
from headrace.core.errors import Unavailable

from .conftest import ANSWER, MOMENT


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
    with pytest.raises(Unavailable, match="to_pandas requires pandas") as raised:
        pandas_frame(ANSWER)
    assert "to_arrow()" in (raised.value.hint or "")
