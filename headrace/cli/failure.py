"""The output of a failed command: an error message, and never a traceback.

A `HeadraceError` has five fields, which are shown as lines on stderr, or with `--json` as one
document on stdout. A usage error has the condition `Usage`. Any other exception is a bug: its
traceback goes to a crash log, whose path is shown.
tests/cli/test_failure.py reads each of them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from typer._click.exceptions import ClickException

from headrace.core.errors import HeadraceError
from headrace.define.folder import find_project_folder

Fields = dict[str, Any]


def run_command(work: Callable[[], int | None], *, json: bool) -> int:
    """The exit code of `work`, whatever happens in it."""
    try:
        return work() or 0
    except ClickException as error:
        if json:
            show(_usage(error), json=True)
        else:
            error.show()
        return error.exit_code
    except Exception as error:
        fields, code = failure_of(error)
        show(fields, json=json)
        return code


def failure_of(error: Exception) -> tuple[Fields, int]:
    """The five fields of an error, and its exit code."""
    if isinstance(error, HeadraceError):
        return error.as_dict(), error.exit_code
    return _unexpected(error), 1


def show(fields: Fields, *, json: bool) -> None:
    """Show the five fields of an error."""
    if json:
        from headrace.cli.report import print_json

        print_json(fields)
        return
    from headrace.cli.report import console, show

    screen = console(stderr=True)
    for line in lines_of(fields):
        show(screen, line)


def lines_of(fields: Fields, style: str = "bold red") -> list[Any]:
    """The condition in red with its message, then detail, hint and origin if present."""
    from rich.text import Text

    lines = [Text.assemble((fields["condition"], style), f": {fields['message']}")]
    lines += [Text(f"  detail: {fields['detail']}")] if fields["detail"] else []
    lines += [Text(f"  hint: {fields['hint']}", style="cyan")] if fields["hint"] else []
    lines += [Text(f"  at {fields['origin']}", style="dim")] if fields["origin"] else []
    return lines


def _usage(error: ClickException) -> Fields:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "headrace"
    return fields_of("Usage", error.format_message(), hint=f"see `{path} --help`.")


def _unexpected(error: Exception) -> Fields:
    """The five fields of an error that is not a HeadraceError."""
    cause = f"{type(error).__name__}: {error}".strip().rstrip(":")
    message = f"unexpected error: {cause}"
    try:
        return fields_of("Unexpected", message, detail=f"the crash log is {_crash_log(error)}")
    except OSError as second:
        import traceback

        # If the crash log cannot be written, the terminal is the only log left.
        traceback.print_exception(error, file=sys.stderr)
        return fields_of("Unexpected", message, detail=f"no crash log could be written: {second}")


def fields_of(
    condition: str, message: str, *, detail: str | None = None, hint: str | None = None
) -> Fields:
    """The five fields of an error that is not a HeadraceError."""
    fields = {"condition": condition, "message": message, "detail": detail, "hint": hint}
    return fields | {"origin": None}


def _crash_log(error: Exception) -> Path:
    import traceback

    name = f"crash-{time.strftime('%Y%m%dT%H%M%S')}-{time.time_ns() % 1_000_000:06d}.log"
    path = _crash_folder() / name
    command = " ".join(["headrace", *sys.argv[1:]])
    path.write_text(f"{command}\n\n{''.join(traceback.format_exception(error))}", "utf-8")
    return path


def _crash_folder() -> Path:
    """The state folder of the current project, if it has one; else the temporary folder."""
    import tempfile

    from headrace.define.settings import load_settings

    folder = find_project_folder(None)
    try:
        state = folder / load_settings(folder).state
    except HeadraceError:
        return Path(tempfile.gettempdir())
    return state if state.is_dir() else Path(tempfile.gettempdir())
