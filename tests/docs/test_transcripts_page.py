"""The page of transcripts lists every one of them, with its story, and no others."""

from __future__ import annotations

from headrace.testing.transcript_parser import yaml_of

from .pages import ROOT, code, table

PATHS = sorted((ROOT / "tests" / "transcripts").glob("*.yaml"))
ROWS = table("docs/transcripts.md", "transcript")


def test_every_transcript_is_listed_with_its_name() -> None:
    listed = {code(file): story for file, story, _ in ROWS}
    assert listed == {path.stem: yaml_of(path.read_text("utf-8"))["name"] for path in PATHS}


def test_the_list_is_in_order_and_says_what_each_shows() -> None:
    assert [code(file) for file, *_ in ROWS] == [path.stem for path in PATHS]
    assert all(shows for *_, shows in ROWS)
