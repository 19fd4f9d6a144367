"""`headrace query`: an answer, and below it what the answer speaks for.

A person never sees a number without how fresh and how exact it is: the lines below the table say
the generation, position, watermark and age of each stream, which columns are estimates, and whether
the answer is provisional.
tests/cli/test_query.py reads a whole answer.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from headrace.cli.folder import asked
from headrace.cli.report import Report, dim, table, waiting
from headrace.cli.words import age, cell, counted, moment
from headrace.core.aggregate import error_text
from headrace.serving.answer import Answer, AsOf, ColumnInfo, Sampled

_NUMBERS = {"INT", "BIGINT", "DOUBLE"}
_PROVISIONAL = "provisional: an event came that only batch can place, in the next generation"


def query(folder: Path, sql: str, limit: int | None) -> Report:
    """Ask the project a SELECT."""
    with asked(folder) as service, waiting("asking"):
        answer = service.sql(sql, limit)
    return Report(answer, shown(answer))


def shown(answer: Answer) -> list[RenderableType]:
    """The answer as a table and the lines below it."""
    lines = [freshness(stream, as_of) for stream, as_of in answer.as_of.items()]
    cut = [Text("there are more rows; ask for fewer, or give --limit", style="yellow")]
    return [
        _rows(answer),
        *map(dim, [*lines, exactness(answer)]),
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
    right = [name for name, info in columns.items() if info.type in _NUMBERS]
    return table(*columns, rows=rows, right=right)


def _cell(value: object, type: str, exact: bool) -> Text:
    text = cell(value, type)
    if value is None:
        return dim(text)
    return Text(text if exact else f"~{text}")


def freshness(stream: str, as_of: AsOf) -> str:
    """What an answer speaks for, of one stream."""
    position = ",".join(map(str, as_of.position))
    watermark = f"{moment(as_of.watermark)} UTC" if as_of.watermark else "none"
    sampled = f" · {_sample(as_of.sampled)}" if as_of.sampled else ""
    return (
        f"{stream}: generation {as_of.generation} · position {position} · watermark {watermark} · "
        f"{age(as_of.age_ms)}{sampled}"
    )


def _sample(sampled: Sampled) -> str:
    passed = counted(sampled.shed, "event")
    return f"sampled: {sampled.share:.1%} of the newest events, {passed} passed over"


def exactness(answer: Answer) -> str:
    """How many rows there are, and which columns are estimates."""
    rows = counted(len(answer.rows), "row")
    columns = answer.columns.items()
    rough = [_rough(name, info) for name, info in columns if not info.exact]
    cut = [name for name, info in columns if info.cut]
    lists = f"; lists cut at their limit: {', '.join(cut)}" if cut else ""
    provisional = any(as_of.provisional for as_of in answer.as_of.values())
    estimated = f"estimated: {', '.join(rough)}; " if rough else ""
    if provisional:
        return f"{rows}; {estimated}{_PROVISIONAL}{lists}"
    others = "every other column exact" if rough else "every column exact"
    return f"{rows}{'; ' if rough else ', '}{estimated}{others}{lists}"


def _rough(name: str, info: ColumnInfo) -> str:
    # A column of a sample has no stated error: nobody knows what was passed over.
    return name if info.error is None else f"{name} ({error_text(info.error, info.error_of)})"
