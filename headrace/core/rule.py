"""Constants of rules and alerts, and the names of the definitions that a rule is compiled to.

A rule is compiled to definitions that are exactly once in both layers: its SELECT as a stream
`_rule_x` or as the view `_alerts_x`, whose rows are its alerts. Users cannot give names that begin
with an underscore, so `hidden` knows them all. tests/compile/test_rules.py checks what is made.
"""

from __future__ import annotations

from enum import StrEnum

ALERTS = "alerts"  # the view of the ledger, in a project with rules
RAISED, MISSED, WITHDRAWN, ENDED = "raised", "missed", "withdrawn", "ended"  # notifications


class Severity(StrEnum):
    INFO = "info"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class Coupling(StrEnum):
    """How alerts become notifications."""

    IMMEDIATE = "immediate"  # one each
    EPOCH = "epoch"  # one for all alerts of a commit


def stream_of(rule: str) -> str:
    """The derived stream with the rule's SELECT."""
    return f"_rule_{rule}"


def view_of(rule: str) -> str:
    """The view whose rows are the rule's alerts."""
    return f"_alerts_{rule}"


def matches_of(shape: str) -> str:
    """The derived stream with the matches of all watches of a shape."""
    return f"_matches_{shape}"


def watched_of(shape: str) -> str:
    """The view whose rows are the matches of all watches of a shape."""
    return f"_watched_{shape}"


def shown_name(view: str) -> str:
    """The name that users see: for the alerts of a rule, the rule.

    >>> shown_name("visitors"), shown_name(view_of("break_in"))
    ('visitors', 'rule break_in')
    """
    if view.startswith(watched_of("")):
        return f"watches of shape {view.removeprefix(watched_of(''))}"
    return f"rule {view.removeprefix(view_of(''))}" if hidden(view) else view


def audit_command(shown: str) -> str:
    """The audit command for a view with this shown name.

    >>> audit_command("visitors"), audit_command("rule break_in")
    ('headrace audit visitors', 'headrace audit break_in')
    """
    if shown.startswith(shown_name(watched_of(""))):
        return "headrace audit"  # watches are not compared by themselves
    return f"headrace audit {shown.removeprefix('rule ')}"


def hidden(name: str) -> bool:
    """Whether a definition is Headrace's own and not the user's."""
    return name.startswith("_")
