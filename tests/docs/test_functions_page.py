"""docs/functions.md is what the tables of headrace.certified say."""

from __future__ import annotations

from headrace.certified.page import PAGE, page


def test_the_page_of_functions_is_the_newest() -> None:
    assert PAGE.read_text() == page(), "run `python -m headrace.certified.page`"
