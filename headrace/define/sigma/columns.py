"""Names of fields as names of columns, and the types that their tests require.

Any character that is not a letter, digit or underscore becomes an underscore. A column that is
compared with texts is a STRING, whatever else it is compared with.
tests/define/sigma/test_columns.py checks names and types.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlglot.tokenizer_core import TokenType

from headrace.define.dialect import Headrace
from headrace.define.sigma.tree import Compare, Equal, Glob, Present, Regex, Same, Test


def column_of(field: str) -> str:
    """The column of a field; a ValueError if nothing of its name is left.

    >>> column_of("process.command-line"), column_of("@timestamp")
    ('process_command_line', 'timestamp')
    """
    name = re.sub(r"\W", "_", field.strip(), flags=re.ASCII).lstrip("_")
    if not name:
        raise ValueError(f"no column name can be made from the field '{field}'")
    return f"f_{name}" if name[0].isdigit() else name


def quoted(name: str) -> str:
    """The name as SQL, in backticks if it is a word of SQL."""
    [token, *more] = Headrace().tokenize(name)
    return name if token.token_type is TokenType.VAR and not more else f"`{name}`"


@dataclass(slots=True)
class FieldColumns:
    """The columns in use, by their name in lower case."""

    types: dict[str, str] = field(default_factory=dict)
    spellings: dict[str, list[str]] = field(default_factory=dict)  # as Sigma wrote the field

    def learn(self, tests: Iterable[Test]) -> None:
        for test in tests:
            self.name(test.field, _type(test))
            if isinstance(test.check, Same):
                self.name(test.check.field)

    def name(self, field: str, type: str = "") -> str:
        """The column of a field, from now on known with its type."""
        column = column_of(field)
        folded = column.lower()
        self.types[folded] = _both(self.types.get(folded, ""), type)
        spellings = self.spellings.setdefault(folded, [])
        spellings += [field] if field not in spellings else []
        # The first spelling stays, whatever the case of the others.
        return column_of(spellings[0])

    def type(self, field: str) -> str:
        return self.types.get(column_of(field).lower()) or "STRING"

    def sql(self, field: str) -> str:
        return quoted(column_of(self.spellings.get(column_of(field).lower(), [field])[0]))


def _type(test: Test) -> str:
    match test.check:
        case Glob() | Regex():
            return "STRING"
        case Equal(value=bool()):
            return "BOOLEAN"
        case Equal(value=value) | Compare(value=value):
            return "DOUBLE" if isinstance(value, float) else "BIGINT"
        case Present() | Same():
            return ""


def _both(one: str, other: str) -> str:
    if not one or not other or one == other:
        return one or other
    return "DOUBLE" if {one, other} == {"BIGINT", "DOUBLE"} else "STRING"
