"""A table as the terminal and a notebook show it. tests/cli/test_report.py reads one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text


def table(
    *heads: str, rows: Iterable[Sequence[str | Text]], right: Iterable[str] = (), title: str = ""
) -> Table:
    """A compact table; the columns in `right` hold numbers."""
    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    if title:
        made.title, made.title_justify, made.title_style = title, "left", "bold"
    numbers = set(right)
    for head in heads:
        made.add_column(Text(head), justify="right" if head in numbers else "left", overflow="fold")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    return made
