"""Texts in pieces."""

from __future__ import annotations

import pytest

from headrace.core.errors import BadDefinition
from headrace.testing.reference.tokenizer import closing, listed, name_in, text_tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a+ b", ["a", "+", "b"]),
        ("x = 'it''s (not)' -- )\n)", ["x", "=", "'it''s (not)'", ")"]),
        ("a /* ( */ b", ["a", "b"]),
        (r"'a\'b' c", [r"'a\'b'", "c"]),
        ("`odd name`.x", ["`odd name`", ".", "x"]),
        ("{- a -}", ["{", "-", "a", "-", "}"]),
        ("", []),
    ],
)
def test_a_text_falls_into_pieces(text: str, expected: list[str]) -> None:
    pieces = text_tokens(text)
    assert [piece.text for piece in pieces] == expected
    assert [text[piece.start : piece.end] for piece in pieces] == expected


def test_a_word_is_known_in_upper_case() -> None:
    assert [piece.word for piece in text_tokens("Pattern (a)")] == ["PATTERN", "", "A", ""]


def test_a_parenthesis_is_closed_by_its_own() -> None:
    assert closing(text_tokens("(a (b) ')' c) d"), 0) == 7
    with pytest.raises(BadDefinition, match="a parenthesis is not closed"):
        closing(text_tokens("(a (b)"), 0)


def test_a_list_is_parted_by_commas_outside_parentheses_and_quotes() -> None:
    assert list(listed("f(a, b) AS x, ',' AS y,z")) == ["f(a, b) AS x", "',' AS y", "z"]


def test_a_name_is_one_word_with_or_without_quotes() -> None:
    assert name_in(" `user` ") == "user"
    with pytest.raises(BadDefinition, match=r"'a\.b' is not a name"):
        name_in("a.b")
