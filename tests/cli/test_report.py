"""A report is a document or a page."""

from __future__ import annotations

import json

import pytest
from rich.text import Text

from headrace.cli.report import Report, bad, unwrapped
from headrace.client.table import table

PAGE = [
    bad("off"),
    table("view", "rows", rows=[["a[b]", "1"], ["c", Text("1,200")]], right=("rows",)),
]


def test_json_is_one_line_and_the_exit_code_is_passed_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert Report({"a": 1.5, "b": None, "c": "ü"}, PAGE, 1).print(json=True) == 1
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert json.loads(said) == {"a": 1.5, "b": None, "c": "ü"}


def test_a_page_has_no_colours_in_a_pipe_and_takes_brackets_as_they_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert Report({}, PAGE).print(json=False) == 0
    said = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert said == ["off", "view   rows", "a[b]      1", "c     1,200"]


def test_at_a_terminal_text_is_broken_between_words_below_its_indentation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "24")
    sentence = Text("merge\n\n  the smaller is kept of any two, whatever the order")
    Report({}, [sentence, unwrapped("headrace query 'SELECT * FROM visitors'")]).print(json=False)
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "merge", "", "  the smaller is kept of", "  any two, whatever the", "  order",
        "headrace query 'SELECT * FROM visitors'",
    ]  # fmt: skip


def test_in_a_pipe_a_long_line_of_text_is_left_whole(capsys: pytest.CaptureFixture[str]) -> None:
    Report({}, [Text("word " * 100)]).print(json=False)
    assert capsys.readouterr().out.count("\n") == 1
