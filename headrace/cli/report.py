"""The output of a command, as a JSON document and as text for a person.

Law: with `--json` stdout gets exactly one JSON document on one line and no colours; without it,
Rich shows the same data. Only `run` and `tail` differ: they print one line per report.
tests/cli/test_report.py checks both.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from headrace.core.problems import Problem

# A pipe has no width. Tables are wide there, so that no cell is folded.
_PIPE_WIDTH = 200


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a command; `parts` are printed one after the other."""

    document: Any
    parts: Sequence[RenderableType]
    exit_code: int = 0

    def print(self, json: bool) -> int:
        """Print it, and return the exit code."""
        if json:
            print_json(self.document)
        else:
            for part in self.parts:
                show(console(), part)
        return self.exit_code


def show(screen: Console, part: RenderableType) -> None:
    """Print a part. At a terminal a line of text is wrapped between words, with its indentation; in
    a pipe it is not wrapped, and `unwrapped` text never is.
    """
    if not isinstance(part, Text):
        screen.print(part)
    elif part.no_wrap or not screen.is_terminal:
        screen.print(part, soft_wrap=True)
    else:
        for line in part.split("\n", allow_blank=True):
            indent = len(line.plain) - len(line.plain.lstrip())
            screen.print(Padding.indent(line[indent:], indent) if line else line)


def unwrapped(text: str) -> Text:
    """A line for copying, which is never wrapped."""
    return Text(text, no_wrap=True)


def print_json(document: Any) -> None:
    """One document on one line; flushed, so that a reader of `run --json` sees it at once."""
    sys.stdout.write(msgspec.json.encode(document).decode() + "\n")
    sys.stdout.flush()


def console(*, stderr: bool = False) -> Console:
    """A Rich console without automatic colours."""
    file = sys.stderr if stderr else sys.stdout
    piped = not file.isatty() and "COLUMNS" not in os.environ
    return Console(
        stderr=stderr, highlight=False, markup=False, width=_PIPE_WIDTH if piped else None
    )


@contextmanager
def spinner(text: str) -> Iterator[None]:
    """A spinner on stderr; only at a terminal."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield
        return
    with screen.status(Text(text)):
        yield


def problem_line(problem: Problem) -> Text:
    """A problem in red, a warning in yellow."""
    if problem.level == "bad":
        return bad(f"problem: {problem.message}")
    return Text(f"warning: {problem.message}", style="yellow")


def dim(text: str) -> Text:
    return Text(text, style="dim")


def good(text: str) -> Text:
    return Text(text, style="green")


def bad(text: str) -> Text:
    return Text(text, style="red")
