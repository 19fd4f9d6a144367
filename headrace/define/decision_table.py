"""A decision table: rules that a spreadsheet holds, as CSV.

The first line names the columns: `rule`, then what is tested (a column or SQL), then what is set
(`SET field`). Each further line is a rule, the one named `else` holds where no other does; lines
that begin with # are comments. Cells are read in `cells.py`. Every error names the file, the row
and the column. tests/define/test_decision_table.py checks what is read and each sentence.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headrace.core.errors import BadDefinition
from headrace.core.origin import Origin
from headrace.define.cells import read_results, read_test
from headrace.define.paths import input_file
from headrace.define.rules import ELSE, CellTest, DecisionRule, SqlFragment

_SET = "SET "


@dataclass(frozen=True, slots=True)
class _Row:
    """A line's cells, as many as there are columns, and its number."""

    cells: list[str]
    number: int


def read_table(
    folder: Path, location: str, name: str, said: Origin
) -> tuple[tuple[DecisionRule, ...], DecisionRule | None]:
    """The rules of a file, and its line for all other events."""
    rows = list(_rows(_text(folder, location, name, said), location))
    if not rows:
        raise BadDefinition(f"{location} is empty", hint=_SHAPE, origin=Origin(location, 1))
    return _Table(location, rows[0], rows[1:]).rules()


_SHAPE = "the first row must be: rule, then the conditions, then SET field for each result."


def _text(folder: Path, location: str, name: str, said: Origin) -> str:
    path = input_file(folder, location, f"rules '{name}'", said)
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadDefinition(
            f"{location} is not UTF-8 text",
            hint="save it from the spreadsheet as CSV UTF-8.",
            origin=Origin(location, 1),
        ) from error
    except OSError as error:
        raise BadDefinition(
            f"rules '{name}': '{location}' cannot be read: {error.strerror}",
            hint="the path after FROM is relative to the project's folder.",
            origin=said,
        ) from error


def _rows(text: str, location: str) -> Iterator[_Row]:
    """The lines that are not empty, each with the number of its first line."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(text))
    before = 0
    try:
        for row in reader:
            number, before = before + 1, reader.line_num
            cells = [cell.strip() for cell in row]
            if any(cells) and not cells[0].startswith("#"):
                yield _Row(cells, number)
    except csv.Error as error:
        raise BadDefinition(
            f"{location} is not valid CSV: {error}", origin=Origin(location, before + 1)
        ) from error


def _separator(text: str) -> str:
    """What the first row has after its first name; spreadsheets differ by their language."""
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return next((sign for sign in next(lines, "") if sign in ",;\t"), ",")


class _Table:
    def __init__(self, location: str, head: _Row, rows: list[_Row]) -> None:
        self.location, self.head, self.rows = location, head, rows
        self.names = head.cells
        self._check_head()

    def rules(self) -> tuple[tuple[DecisionRule, ...], DecisionRule | None]:
        rows = [self._whole(row) for row in self.rows]
        values = [self._values(rows, number) for number in range(len(self.names))]
        made = [
            self._rule(row, {n: cells[i] for n, cells in enumerate(values) if cells})
            for i, row in enumerate(rows)
        ]
        last = made.pop() if made and made[-1].name.lower() == ELSE else None
        for rule in made:
            if rule.name.lower() == ELSE:
                raise BadDefinition(
                    f"row {rule.origin.line}: 'else' must be the last row", origin=rule.origin
                )
        if last and last.tests:
            raise BadDefinition(
                f"row {last.origin.line}: 'else' must not have conditions",
                hint="'else' applies when no other row matches; leave its condition cells empty.",
                origin=last.origin,
            )
        return tuple(made), last and DecisionRule(ELSE, (), last.sets, last.origin)

    # The first row

    def _check_head(self) -> None:
        if self.names[0].lower() != "rule":
            raise self._error(self.head, f"the first column must be 'rule', not '{self.names[0]}'")
        fields = [self._field(number) for number in range(len(self.names))]
        if not any(fields):
            raise self._error(self.head, "at least one column must begin with SET")
        for number, field in enumerate(fields):
            if field is not None and not field.isidentifier():
                raise self._error(
                    self.head,
                    f"column '{self.names[number]}': a field name may only have letters, digits "
                    "and '_'",
                )

    def _field(self, number: int) -> str | None:
        name = self.names[number]
        return name[len(_SET) :].strip() if name.upper().startswith(_SET) else None

    # The others

    def _whole(self, row: _Row) -> _Row:
        missing = len(self.names) - len(row.cells)
        cells = row.cells + [""] * missing
        for number, cell in enumerate(cells):
            if cell and (number >= len(self.names) or not self.names[number]):
                raise self._error(row, f"'{cell}' is in a column without a name")
        if not cells[0]:
            raise self._error(row, "the rule has no name")
        return _Row(cells, row.number)

    def _values(self, rows: list[_Row], number: int) -> list[str | None] | None:
        """The SQL of a column's results, if it is one of results."""
        if self._field(number) is None:
            return None
        return read_results([row.cells[number] for row in rows])

    def _rule(self, row: _Row, values: dict[int, str | None]) -> DecisionRule:
        origin = Origin(self.location, row.number)
        tests: list[SqlFragment | CellTest] = []
        sets: list[tuple[str, SqlFragment]] = []
        for number, name in enumerate(self.names):
            where = f"rule '{row.cells[0]}', row {row.number}, column '{name}'"
            if number in values:
                text = values[number]
                sets += (
                    [(self._field(number) or "", SqlFragment(text, origin, where))] if text else []
                )
            elif number and (test := self._test(row, number, where)):
                tests.append(test)
        return DecisionRule(row.cells[0], tuple(tests), tuple(sets), origin)

    def _test(self, row: _Row, number: int, where: str) -> SqlFragment | CellTest | None:
        head = Origin(self.location, self.head.number)
        subject = SqlFragment(self.names[number], head, f"column '{self.names[number]}'")
        try:
            return read_test(row.cells[number], subject, Origin(self.location, row.number), where)
        except ValueError as error:
            raise BadDefinition(
                f"{where}: {error}", origin=Origin(self.location, row.number)
            ) from error

    def _error(self, row: _Row, message: str) -> BadDefinition:
        return BadDefinition(
            f"row {row.number}: {message}", hint=_SHAPE, origin=Origin(self.location, row.number)
        )
