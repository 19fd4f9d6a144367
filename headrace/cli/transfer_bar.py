"""The progress bar of a command that reads files: events, share of the bytes, and rate.

It is on stderr, and only at a terminal, so that what a command prints can be piped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TaskProgressColumn,
    TextColumn,
)

from headrace.cli.report import console


@contextmanager
def transfer_bar(
    name: str, size: int | None, quiet: bool, *more: ProgressColumn
) -> Iterator[tuple[Progress, TaskID]]:
    """The bar of so many bytes, if their number is known, with more columns after its own."""
    screen = console(stderr=True)
    bar = Progress(
        TextColumn("{task.fields[events]} events"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        *more,
        console=screen,
        transient=True,
        disable=quiet or not screen.is_terminal,
    )
    with bar:
        yield bar, bar.add_task(name, total=size, events="0", rate="")
