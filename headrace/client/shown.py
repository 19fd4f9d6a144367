"""An answer as a notebook shows it, and as text.

Both say below the rows what `headrace query` says: how fresh and how exact they are. Whatever comes
from events is escaped, because a notebook would run it.
tests/client/test_shown.py reads both.
"""

from __future__ import annotations

from html import escape
from io import StringIO

from rich.console import Console

from headrace.cli.query import exactness, freshness, shown
from headrace.cli.words import cell, counted
from headrace.serving.answer import Answer

_ROWS_MAX = 50  # of a page; the rest is counted
_WIDTH = 160


def as_text(answer: Answer) -> str:
    """The answer as the terminal would show it, without colours."""
    screen = Console(file=StringIO(), width=_WIDTH, highlight=False, markup=False)
    for part in shown(answer):
        screen.print(part, soft_wrap=True)
    assert isinstance(screen.file, StringIO)
    return "\n".join(line.rstrip() for line in screen.file.getvalue().splitlines())


def as_html(answer: Answer) -> str:
    """The answer as a table, with the first rows."""
    heads = "".join(
        f'<th title="{escape(info.type)}">{escape(name)}</th>'
        for name, info in answer.columns.items()
    )
    rows = "".join(f"<tr>{_cells(answer, row)}</tr>" for row in answer.rows[:_ROWS_MAX])
    lines = [*map(freshness, answer.as_of, answer.as_of.values()), exactness(answer)]
    more = len(answer.rows) - _ROWS_MAX
    lines += [f"{counted(more, 'row')} not shown"] if more > 0 else []
    lines += ["there are more rows than these"] if answer.truncated else []
    below = "<br>".join(map(escape, lines))
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table><p>{below}</p>"


def _cells(answer: Answer, row: dict[str, object]) -> str:
    said = []
    for name, info in answer.columns.items():
        value = row.get(name)
        mark = "" if info.exact or value is None else "~"
        said.append(f"<td>{escape(mark + cell(value, info.type))}</td>")
    return "".join(said)
