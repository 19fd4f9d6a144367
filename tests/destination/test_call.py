"""A function of functions.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.destination.call import CallDestination, CallWriter
from headrace.destination.protocol import DestinationContext
from tests.serving.rule_bench import rule_project

from .messages import NOTICE, SAID

FUNCTIONS = """
from headrace import action

called = []

@action
def first(notification):
    called.append(notification["key"])

@action
def second(notification):
    raise ValueError(called)
"""


def refuse(stream: str, events: Any) -> Any:
    raise AssertionError("nothing goes into a stream here")


def test_function_is_called_with_the_notification() -> None:
    called: list[dict[str, Any]] = []
    CallWriter(called.append).deliver([NOTICE])
    assert called == [SAID]


def test_functions_are_of_one_module(tmp_path: Path) -> None:
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    there = DestinationContext(rule_project(tmp_path, ""), refuse)
    CallDestination("first").connect(there).deliver([NOTICE])
    with pytest.raises(ValueError, match=f"^\\['{NOTICE.key}'\\]$"):
        CallDestination("second").connect(there).deliver([NOTICE])
