"""YAML is read safely, and what it would lose is refused."""

from __future__ import annotations

import pytest

from headrace.core.errors import BadDefinition
from headrace.define.sigma.documents import read_documents


def test_documents_know_their_lines_and_dates_stay_texts() -> None:
    found = read_documents("title: a\ndate: 2026-01-31\n---\n---\n# more\ntitle: b\n", "two.yml")
    assert [str(document.origin) for document in found] == ["two.yml:1", "two.yml:6"]
    assert found[0].fields == {"title": "a", "date": "2026-01-31"}


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("a: 1\nb: {c: 1, c: 2}", "x.yml has the key 'c' twice in one mapping", 2),
        ("- a", "x.yml has a document that is not a mapping", 1),
        ("a: &a [*a]", "x.yml has a document of more than 100,000 nodes", 1),
        (
            "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b]\n"
            "d: &d [*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e]",
            "x.yml has a document of more than 100,000 nodes",
            1,
        ),
        (
            "a: !!python/object/apply:os.system [ls]",
            "x.yml is not valid YAML: could not determine a constructor for the tag "
            "'tag:yaml.org,2002:python/object/apply:os.system'",
            1,
        ),
        ("a: [", "x.yml is not valid YAML: expected the node content, but found '<stream end>'", 1),
    ],
)
def test_what_is_unsafe_or_lost_is_refused(text: str, message: str, line: int) -> None:
    with pytest.raises(BadDefinition) as refused:
        read_documents(text, "x.yml")
    assert refused.value.message == message
    assert str(refused.value.origin) == f"x.yml:{line}"


def test_what_is_nested_without_end_is_refused() -> None:
    with pytest.raises(BadDefinition, match="is not valid YAML"):
        read_documents("a: " + "[" * 5_000, "x.yml")
