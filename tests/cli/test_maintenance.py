"""Rebuilding, comparing, and what could not be read."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from typer.testing import Result

from headrace.api.resources.dead_letters import DeadLetter
from headrace.api.service import RebuildResult
from headrace.serving.store import AuditResult

from .conftest import Told, document

SAME = AuditResult("visitors", 42, 0, note="up to 603,600", changed=0)
OTHER = AuditResult("totals", 1, 1, ("events: 5 here, 6 there",), changed=1)
SKIPPED = AuditResult("fresh", 0, 0, note="not compared: the answer is provisional")
LETTER = DeadLetter(
    1, 17, "2026-11-15T19:00:03Z", "ts: not a TIMESTAMP", '{"ts": "half past [six]"}'
)


def test_a_rebuild_tells_its_generation_and_rows(told: Told, call: Callable[..., Result]) -> None:
    result = call("rebuild", "visitors")
    assert result.exit_code == 0
    assert result.stdout == (
        "visitors: generation 4, 42 rows, 0 differences from what was served before\n"
    )
    assert document(call("rebuild", "visitors", "--json"))["generation"] == 4


def test_a_rebuild_that_was_not_compared_claims_no_agreement(
    told: Told, call: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(told, "rebuild", lambda view: RebuildResult(view, 1, 42, None))
    assert call("rebuild", "visitors").stdout == (
        "visitors: generation 1, 42 rows, not compared with what was served before\n"
    )


def test_a_rebuild_of_an_unknown_view_exits_with_3(told: Told, call: Callable[..., Result]) -> None:
    result = call("rebuild", "nobody", "--json")
    assert result.exit_code == 3
    assert document(result)["message"] == "there is no materialized view 'nobody'"


def test_an_audit_without_differences_exits_with_0(told: Told, call: Callable[..., Result]) -> None:
    told.audits = [SAME, OTHER]
    result = call("audit", "visitors")
    assert result.exit_code == 0
    assert [line.rstrip() for line in result.stdout.splitlines()] == [
        "view      compared  differences  note",
        "visitors        42            0  up to 603,600",
    ]


def test_a_view_that_was_not_compared_has_no_number_of_differences(
    told: Told, call: Callable[..., Result]
) -> None:
    told.audits = [SKIPPED]
    result = call("audit", "fresh")
    assert result.stdout.splitlines()[1].split()[:4] == ["fresh", "0", "–", "not"]


def test_an_audit_with_a_difference_exits_with_1_and_shows_examples(
    told: Told, call: Callable[..., Result]
) -> None:
    told.audits = [SAME, OTHER]
    result = call("audit")
    assert result.exit_code == 1
    assert "  totals: events: 5 here, 6 there" in result.stdout
    result = call("audit", "--json")
    assert result.exit_code == 1
    said = document(result)
    assert not said["ok"]
    assert [audit["differences"] for audit in said["audits"]] == [0, 1]


def test_an_audit_of_nothing_says_so(told: Told, call: Callable[..., Result]) -> None:
    assert "nothing to compare" in call("audit").stdout


def test_dead_letters_are_shown_with_reason_and_bytes(
    told: Told, call: Callable[..., Result]
) -> None:
    told.letters = [LETTER, LETTER]
    result = call("dead-letters", "clicks", "--limit", "1")
    assert [line.rstrip() for line in result.stdout.splitlines()] == [
        "partition  offset  arrived              reason               raw",
        '        1      17  2026-11-15 19:00:03  ts: not a TIMESTAMP  {"ts": "half past [six]"}',
        "the newest 1 of 2",
    ]
    said = document(call("dead-letters", "clicks", "--json"))
    assert (said["stream"], said["total"]) == ("clicks", 2)
    assert [letter["offset"] for letter in said["dead_letters"]] == [17, 17]


def test_a_stream_without_dead_letters_says_so(told: Told, call: Callable[..., Result]) -> None:
    assert call("dead-letters", "clicks").stdout == "clicks has no dead letters\n"
