"""The command line as a whole: quick, and with the same manners in every command."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable

import pytest
import typer
from typer.testing import Result

from headrace.cli.main import app
from headrace.core.version import __version__

from .conftest import document

COMMANDS = (
    "new", "check", "plan", "explain", "run", "send", "import", "query", "export", "late", "tail",
    "status", "top", "rebuild", "audit", "verify", "backup", "restore", "why", "replay",
    "dead-letters", "doctor", "audit-log", "openapi", "serve", "submit", "jobs", "apply",
    "rollback", "sigma", "rules", "job", "rule", "watch", "alerts", "user", "token", "grant",
)  # fmt: skip
GROUPS = {
    "job": ("show", "cancel", "restart", "pause", "resume", "logs"),
    "rule": ("list", "show", "add", "disable", "enable", "remove", "history"),
    "rules": ("test",),
    "watch": ("list", "show", "add", "remove"),
    "alerts": ("list", "show", "ack", "mute", "unmute", "retry"),
    "user": ("add", "list", "remove"),
    "token": ("create", "list", "revoke"),
    "grant": ("add", "list", "remove"),
}
HEAVY = {"pyspark", "pyarrow", "deltalake", "duckdb", "sqlglot", "rich.console", "httpx", "numpy"}
HELP = [sys.executable, "-c", "from headrace.cli.main import app; app()", "--help"]


@pytest.mark.process
def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from headrace.cli.main import app; sys.argv = ['headrace', '--help']\n"
        "try: app()\n"
        "finally: print('\\n' + ' '.join(sys.modules))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Commands:" in ended.stdout
    assert not HEAVY & set(ended.stdout.splitlines()[-1].split())


@pytest.mark.process
def test_help_takes_less_than_300_ms() -> None:
    # The processor's time, and the best of five: a wall clock would measure what else runs here.
    # The help neither sleeps nor waits, so on a machine that is free the two are the same.
    assert min(_processor_seconds_of_help() for _ in range(5)) < 0.3


def _processor_seconds_of_help() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(HELP, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def test_there_are_these_commands_and_each_takes_json() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert tuple(commands) == COMMANDS
    for name, command in commands.items():
        inner = getattr(command, "commands", {})
        assert tuple(inner) == GROUPS.get(name, ())
        for each in inner.values() or [command]:
            assert "--json" in [name for param in each.params for name in param.opts]


def test_the_version_is_said(call: Callable[..., Result]) -> None:
    result = call("--version")
    assert (result.exit_code, result.stdout) == (0, f"headrace {__version__}\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_a_help_page_whose_first_line_is_not_cut(
    command: str, call: Callable[..., Result]
) -> None:
    assert call(command, "--help").exit_code == 0
    line = next(x for x in call("--help").stdout.splitlines() if x.startswith(f"  {command} "))
    assert not line.endswith("...")


def test_no_command_shows_the_help_and_is_a_usage_error(call: Callable[..., Result]) -> None:
    result = call()
    assert result.exit_code == 2
    assert "Commands:" in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ("stats",), ("status", "--bogus"), ("send", "clicks"), ("run", "--port", "70000"),
        ("query", "SELECT 1", "--limit", "-1"), ("send", "clicks", "-", "--format", "xml"),
        ("run", "--for", "a while"), ("new",),
    ],
)  # fmt: skip
def test_a_wrong_use_exits_with_2_and_in_json_has_the_five_fields(
    arguments: tuple[str, ...], call: Callable[..., Result]
) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert "Error: " in result.stderr
    result = call(*arguments, "--json")
    assert result.exit_code == 2
    said = document(result)
    assert list(said) == ["condition", "message", "detail", "hint", "origin"]
    assert said["condition"] == "Usage"
    assert "--help`." in said["hint"]
