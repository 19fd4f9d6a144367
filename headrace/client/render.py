"""An answer as text for a terminal, and as HTML for a notebook.

A result is never shown without its freshness and exactness: the lines below the table have the
generation, position, watermark and age of each stream, which columns are estimates, and whether the
answer is provisional. All data of events is escaped in HTML, because a notebook would run it.
tests/client/test_render.py and tests/cli/test_query.py read whole answers.
"""

from __future__ import annotations

from html import escape
from io import StringIO

from rich.console import Console, RenderableType
from rich.text import Text

from headrace.client.formats import age, cell, plural, timestamp
from headrace.client.table import table
from headrace.core.aggregate import error_text
from headrace.serving.answer import Answer, AsOf, ColumnInfo, Sampled

_ROWS_MAX = 50  # of a page; the rest is counted
_WIDTH = 160
_NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")
_ASIDE = "matches of {} are missing: pattern matching exceeded its limit of steps, see status"
_PROVISIONAL = "provisional: an out-of-order event waits for the next generation of batch"
_MORE = "there are more rows than these"


def as_text(answer: Answer) -> str:
    """The answer as the terminal would show it, without colours."""
    screen = Console(file=StringIO(), width=_WIDTH, highlight=False, markup=False)
    for part in render(answer):
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
    lines += [f"{plural(more, 'row')} not shown"] if more > 0 else []
    lines += [_MORE] if answer.truncated else []
    below = "<br>".join(map(escape, lines))
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table><p>{below}</p>"


def _cells(answer: Answer, row: dict[str, object]) -> str:
    cells = []
    for name, info in answer.columns.items():
        value = row.get(name)
        mark = "" if info.exact or value is None else "~"
        cells.append(f"<td>{escape(mark + cell(value, info.type))}</td>")
    return "".join(cells)


def render(answer: Answer) -> list[RenderableType]:
    """The answer as a table and the lines below it."""
    lines = [freshness(stream, as_of) for stream, as_of in answer.as_of.items()]
    cut = [Text(f"{_MORE}; filter them, or raise the limit", style="yellow")]
    return [
        _rows(answer),
        *map(_dim, [*lines, exactness(answer)]),
        *(cut if answer.truncated else []),
    ]


def _rows(answer: Answer) -> RenderableType:
    if not answer.rows:
        return Text("no rows")
    columns = answer.columns
    rows = [
        [_cell(row.get(name), info.type, info.exact) for name, info in columns.items()]
        for row in answer.rows
    ]
    right = [name for name, info in columns.items() if _number(info.type)]
    return table(*columns, rows=rows, right=right)


def _number(type: str) -> bool:
    """Whether a type is numeric: of a view, as DECIMAL(14,3), or of Spark, as decimal(14,3)."""
    return type.upper().partition("(")[0] in _NUMBERS


def _cell(value: object, type: str, exact: bool) -> Text:
    text = cell(value, type)
    if value is None:
        return _dim(text)
    return Text(text if exact else f"~{text}")


def freshness(stream: str, as_of: AsOf) -> str:
    """The freshness of an answer for one stream."""
    position = ",".join(map(str, as_of.position))
    watermark = f"{timestamp(as_of.watermark)} UTC" if as_of.watermark else "none"
    sampled = f" · {_sample(as_of.sampled)}" if as_of.sampled else ""
    behind = f" · {plural(as_of.behind, 'event')} behind" if as_of.behind else ""
    return (
        f"{stream}: generation {as_of.generation} · position {position} · watermark {watermark} · "
        f"{age(as_of.age_ms)}{behind}{sampled}"
    )


def _sample(sampled: Sampled) -> str:
    passed = plural(sampled.shed, "event")
    return f"sampled: {sampled.share:.1%} of the newest events, {passed} skipped"


def exactness(answer: Answer) -> str:
    """How many rows there are, and which columns are estimates."""
    rows = plural(len(answer.rows), "row")
    columns = answer.columns.items()
    rough = [_rough(name, info) for name, info in columns if not info.exact]
    cut = [name for name, info in columns if info.cut]
    lists = f"; lists cut at their limit: {', '.join(cut)}" if cut else ""
    provisional = any(as_of.provisional for as_of in answer.as_of.values())
    aside = sum(as_of.set_aside for as_of in answer.as_of.values())
    lists += f"; {_ASIDE.format(plural(aside, 'key'))}" if aside else ""
    estimated = f"estimated: {', '.join(rough)}; " if rough else ""
    if provisional:
        return f"{rows}; {estimated}{_PROVISIONAL}{lists}"
    others = "every other column exact" if rough else "every column exact"
    if behind := sum(as_of.behind for as_of in answer.as_of.values()):
        others += f" without {plural(behind, 'event')} that are not processed yet"
    return f"{rows}{'; ' if rough else ', '}{estimated}{others}{lists}"


def _rough(name: str, info: ColumnInfo) -> str:
    # A column of a sample has no stated error, because the skipped events are not known.
    return name if info.error is None else f"{name} ({error_text(info.error, info.error_of)})"


def _dim(text: str) -> Text:
    return Text(text, style="dim")
