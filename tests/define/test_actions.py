"""Actions that functions.py gives to rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.core.errors import UnknownName
from headrace.define.actions import load_actions
from headrace.run.compiling import check_without_spark
from tests.serving.rule_bench import SLOW, rule_project

CODE = "from headrace import action\n\n\n@action\ndef page_me(notification):\n    pass\n"


def test_marked_functions_are_actions(tmp_path: Path) -> None:
    (tmp_path / "functions.py").write_text(f"{CODE}\n\ndef other(x):\n    return x\n")
    assert list(load_actions(tmp_path / "functions.py")) == ["page_me"]
    assert load_actions(None) == {}
    check_without_spark(rule_project(tmp_path, f"{SLOW} NOTIFY CALL page_me"))


def test_rule_that_calls_what_is_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "functions.py").write_text(CODE)
    with pytest.raises(UnknownName) as refused:
        check_without_spark(rule_project(tmp_path, f"{SLOW} NOTIFY CALL page_you"))
    assert refused.value.message == (
        "rule 'slow' calls 'page_you', but functions.py has no such action"
    )
    assert refused.value.hint == ("available actions: page_me. Add one with @action.")
