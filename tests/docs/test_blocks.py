"""Every code block that needs no Spark is loaded, executed or parsed."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import typer.main
from typer._click.core import Context
from typer._click.exceptions import ClickException

from headrace.api.routes import ROUTES
from headrace.cli.main import app
from headrace.core.origin import Origin
from headrace.define.setting import read_into
from headrace.define.settings import read_settings
from headrace.define.statements import read_statements
from headrace.define.stream_subscription import read_stream_subscription
from headrace.define.view_subscription import read_subscription
from headrace.server.routes import ROUTES as SERVER_ROUTES
from headrace.server.settings import ServerSettings
from headrace.testing import load

from .pages import ROOT, Block, blocks, shell_lines, write_files

_KNOWN = {"sql", "csv", "sh", "json", "toml", "python", "yaml", ""}
_OTHER_COMMANDS = {"make", "cd", "export", "sqlite3", "tar", ".venv/bin/python"}


def each(*languages: str, mark: str | None = None) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("block", blocks(*languages, mark=mark), ids=str)


def test_every_block_has_a_language_that_is_tested() -> None:
    found = blocks()
    assert {block.language for block in found} <= _KNOWN
    assert {block.mark for block in found if block.language == "sql"} <= {
        "definitions", "refused", "query", "subscription", "following",
    }  # fmt: skip


@each("sql", mark="definitions")
def test_definitions_are_read(block: Block, tmp_path: Path) -> None:
    write_files(block.page, tmp_path)
    assert read_statements(block.text, str(block), tmp_path)


@each("sql", mark="subscription")
def test_subscriptions_are_read(block: Block) -> None:
    assert read_subscription(block.text).view


@each("sql", mark="following")
def test_subscriptions_to_streams_are_read(block: Block) -> None:
    assert read_stream_subscription(block.text).stream


@each("toml")
def test_settings_are_read(block: Block) -> None:
    said, origin = tomllib.loads(block.text), Origin(block.page, block.line)
    if block.mark == "server":
        read_into(ServerSettings(), said, origin)
    else:
        read_settings(said, origin)


@each("json")
def test_json_is_json(block: Block) -> None:
    json.loads(block.text)


@each("python")
def test_python_runs(block: Block) -> None:
    exec(compile(block.text, str(block), "exec"), {"__name__": "docs"})


@each("yaml")
def test_transcripts_are_read(block: Block, tmp_path: Path) -> None:
    (tmp_path / "story.yaml").write_text(block.text, "utf-8")
    assert load(tmp_path / "story.yaml").steps


@each("sh")
def test_commands_exist_with_their_options(block: Block) -> None:
    for line in shell_lines(block):
        program, *arguments = shlex.split(line)
        if program == "headrace":
            _parse(arguments)
        elif program == "curl":
            _check_curl(arguments)
        else:
            assert program in _OTHER_COMMANDS, line


def _parse(arguments: list[str]) -> None:
    """Parse as the command line does, without running anything."""
    if arguments == ["--version"]:
        return
    group = typer.main.get_command(app)
    name, *rest = arguments
    while name in {option for parameter in group.params for option in parameter.opts}:
        _, name, *rest = rest  # the options of every command take a value
    command = group.commands[name]  # type: ignore[attr-defined]
    if hasattr(command, "commands"):
        command, rest = command.commands[rest[0]], rest[1:]
    try:
        with Context(command, info_name=name) as context:
            command.parse_args(context, rest)
    except ClickException as error:
        raise AssertionError(
            f"headrace {shlex.join(arguments)}: {error.format_message()}"
        ) from error


def _check_curl(arguments: list[str]) -> None:
    url = urlsplit(next(argument for argument in arguments if argument.startswith("http://")))
    method = arguments[arguments.index("-X") + 1] if "-X" in arguments else "GET"
    parts = unquote(url.path).split("/")
    known = {(route.method, route.path) for route in (*ROUTES, *SERVER_ROUTES)}
    assert any(method == m and _matches(path, parts) for m, path in known), url.path
    if "--data-binary" in arguments:
        body: Any = arguments[arguments.index("--data-binary") + 1]
        assert body.startswith("@") or json.loads(body)


def _matches(pattern: str, parts: list[str]) -> bool:
    wanted = pattern.split("/")
    if wanted[-1].endswith(":path}"):  # takes any number of parts
        wanted[-1:] = ["{part}"] * (len(parts) - len(wanted) + 1)
    return len(wanted) == len(parts) and all(
        w == p or (w.startswith("{") and p) for w, p in zip(wanted, parts, strict=True)
    )


def test_readmes_project_is_the_one_that_new_makes() -> None:
    template = (ROOT / "headrace/cli/template/shop.sql").read_text("utf-8")
    shown = next(block for block in blocks("sql", mark="definitions") if block.page == "README.md")
    assert _said(shown.text) == _said(template)


def _said(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return [line for line in lines if line.strip()]
