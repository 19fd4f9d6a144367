"""Actions that a project's functions.py gives to its rules: `NOTIFY CALL page_me`.

An action is a function of one notification, a dictionary. It is retried if it raises, and after a
kill it may be called again for a notification that it has handled, so it should deduplicate by the
notification's key. tests/define/test_actions.py checks loading and refusals.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from headrace.core.errors import UnknownName
from headrace.define.definitions import RuleDefinition, WatchDefinition
from headrace.define.functions import load_module

F = TypeVar("F", bound=Callable[[dict[str, Any]], Any])
MARK = "__headrace_action__"


def action(body: F) -> F:
    """Register a function as an action of rules.

    >>> @action
    ... def page_me(notification):
    ...     print(notification["rule"], [alert["id"] for alert in notification["alerts"]])
    """
    setattr(body, MARK, body.__name__)
    return body


def load_actions(path: Path | None) -> dict[str, Callable[[dict[str, Any]], Any]]:
    """The actions of a project's Python file, by name."""
    if path is None:
        return {}
    values = vars(load_module(path)).values()
    return {getattr(body, MARK): body for body in values if hasattr(body, MARK)}


def check_call(rule: RuleDefinition | WatchDefinition, name: str, known: dict[str, Any]) -> None:
    """Refuse a call of an unknown action."""
    if name not in known:
        raise UnknownName(
            f"{rule.said} calls '{name}', but functions.py has no such action",
            hint=f"available actions: {', '.join(known) or 'none'}. Add one with @action.",
            origin=rule.origin,
        )
