"""What is shown when a command fails."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from headrace.cli.failure import run_command
from headrace.core.errors import NotFound, PortInUse, UnknownColumn

from .conftest import Told, document

ERROR = UnknownColumn(
    "there is no column '[page]'",
    detail="clicks has: user, url.",
    hint="did you mean 'url'?",
    origin="shop.sql:3",
)


def test_an_error_is_shown_as_condition_message_detail_hint_and_origin(
    told: Told, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Result]
) -> None:
    monkeypatch.setattr(told, "sql", _raising(ERROR))
    result = call("query", "SELECT 1")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr == (
        "UnknownColumn: there is no column '[page]'\n"
        "  detail: clicks has: user, url.\n"
        "  hint: did you mean 'url'?\n"
        "  at shop.sql:3\n"
    )


def test_an_error_in_json_is_one_document_on_stdout(
    told: Told, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Result]
) -> None:
    monkeypatch.setattr(told, "sql", _raising(ERROR))
    result = call("query", "SELECT 1", "--json")
    assert result.exit_code == 1
    assert result.stderr == ""
    assert document(result) == ERROR.as_dict()


@pytest.mark.parametrize(
    ("error", "code"), [(ERROR, 1), (NotFound("no"), 3), (PortInUse("no"), 5), (KeyError("x"), 1)]
)
def test_the_exit_code_is_that_of_the_condition(error: Exception, code: int) -> None:
    assert run_command(_raising(error), json=True) == code


def test_what_nobody_expected_is_one_sentence_and_the_path_of_a_crash_log(
    told: Told, shop: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Result]
) -> None:
    (shop / ".headrace").mkdir()
    monkeypatch.setattr(told, "ask", _raising(KeyError("lost")))
    result = call("status")
    assert result.exit_code == 1
    assert "Traceback" not in result.output
    assert "unexpected error: KeyError: 'lost'" in result.stderr
    (log,) = (shop / ".headrace").glob("crash-*.log")
    assert f"detail: the crash log is {log}" in result.stderr
    assert "Traceback" in log.read_text()


def test_without_a_project_the_crash_log_is_in_the_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert run_command(_raising(ValueError("x")), json=False) == 1
    assert len(list(tmp_path.glob("crash-*.log"))) == 1


def test_an_interrupted_command_exits_with_130(
    told: Told, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Result]
) -> None:
    monkeypatch.setattr(told, "ask", _raising(KeyboardInterrupt()))
    assert call("status").exit_code == 130
    assert told.closed


def _raising(error: BaseException) -> Callable[..., int]:
    def work(*_: object) -> int:
        raise error

    return work
