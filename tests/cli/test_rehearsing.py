"""`headrace rules test`: the page, the document and the mistakes; the rehearsal is made up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import Result

from headrace.define.project import Project
from headrace.run.rehearsal import Comparison, Rehearsal

from .conftest import document

RULES = """CREATE RULES pages ON clicks
RULE shop WHEN url = '/shop' THEN SET kind = 'shop' ELSE SET kind = 'other';"""
FOUND = Rehearsal(
    "pages",
    "clicks",
    "2026-11-15T19:00:00Z",
    1203,
    1203,
    {"shop": 3, "else": 1100},
    100,
    Comparison(12, {"kind": 12}, ["zone"], ["old"], 2, 1),
    [
        {"rule": "shop", "kind": "shop", "url": "/shop", "tags": ["a", "b"]},
        {"rule": None, "kind": None, "url": "/x", "tags": None},
    ],
)


@pytest.fixture
def asked(shop: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    (shop / "rules.sql").write_text(RULES)
    found: list[Any] = []

    def rehearse(project: Project, *said: Any) -> Rehearsal:
        found.append(said)
        return FOUND

    monkeypatch.setattr("headrace.run.rehearsal.rehearse", rehearse)
    return found


def test_a_rehearsal_is_shown(asked: list[Any], call: Callable[..., Result]) -> None:
    result = call("rules", "test", "PAGES", "--since", "2026-11-15T19:00:00Z")
    assert [line.rstrip() for line in result.stdout.splitlines()] == [
        "pages on clicks: 1,203 events since 2026-11-15 19:00 UTC",
        "",
        "rule     results  share",
        "shop           3   0.2%",
        "else       1,100  91.4%",
        "no rule      100   8.3%",
        "",
        "12 of 1,203 events would have different results than deployed",
        "  kind: 12 events",
        "  zone: a new field",
        "  old: a removed field",
        "  2 events only with these rules",
        "  1 event only as deployed",
        "",
        "samples",
        "rule  kind  url    tags",
        "shop  shop  /shop  a, b",
        "null  null  /x     null",
    ]
    assert asked == [("pages", 1_794_769_200_000_000, 10)]


def test_a_rehearsal_is_one_document(asked: list[Any], call: Callable[..., Result]) -> None:
    said = document(call("rules", "test", "pages", "--limit", "2", "--json"))
    assert said == msgspec.to_builtins(FOUND)
    assert asked == [("pages", None, 2)]


def test_nothing_deployed_and_several_rows_are_told(
    asked: list[Any], call: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = msgspec.structs.replace(FOUND, deployed=None, results=1300, samples=[], since=None)
    monkeypatch.setattr("headrace.run.rehearsal.rehearse", lambda *_: other)
    lines = call("rules", "test", "pages").stdout.splitlines()
    assert lines[0] == (
        "pages on clicks: 1,203 events, 97 additional results because some events match several "
        "rows of a table"
    )
    assert lines[-1] == "nothing to compare with: no stream of this name is deployed"


def test_unknown_rules_are_not_found(asked: list[Any], call: Callable[..., Result]) -> None:
    result = call("rules", "test", "page", "--json")
    assert result.exit_code == 3
    assert document(result)["message"] == "there are no rules named 'page'"
    assert document(result)["hint"] == "did you mean 'pages'?"


def test_a_wrong_moment_is_told(asked: list[Any], call: Callable[..., Result]) -> None:
    result = call("rules", "test", "pages", "--since", "yesterday", "--json")
    assert (
        document(result)["message"]
        == "'yesterday' is not a valid timestamp such as 2026-11-15T19:00:00Z"
    )


def test_the_group_alone_shows_its_help(call: Callable[..., Result]) -> None:
    assert "Show what rules would decide on past events." in call("rules").output
