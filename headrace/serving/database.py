"""What the store asks of a database: transactions, one writer that is fenced, and SQL.

SQL is written in what SQLite and PostgreSQL have in common (`ON CONFLICT`, `RETURNING`, parameters
as `?` or `?1`), and everything else is the implementation's: placeholders, types, errors. Only this
room imports a driver or writes SQL. tests/serving/test_sqlite.py checks SQLite against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from headrace.serving.changes import ChangedKeys, Changes

Parameters = Sequence[Any]


class Rows(Protocol):
    """The rows of a statement, and how many it has changed."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Transaction(Protocol):
    """What is read is of one moment; what is written is there at its end, or not at all."""

    changed: ChangedKeys  # rows of views that it writes
    changes: Changes  # of the newest commits

    def execute(self, sql: str, parameters: Parameters = (), /) -> Rows: ...
    def listed(self, values: Sequence[str]) -> tuple[str, Any]:
        """A SELECT of these values as a column `value`, and its one parameter: there may be more
        of them than a statement has parameters.
        """

    def executemany(self, sql: str, rows: Iterable[Parameters], /) -> Rows: ...


class Database(Protocol):
    """The database of one project."""

    changes: Changes

    def take_over(self) -> None:
        """Become the writer; an earlier writer is fenced from now on."""

    def read(self) -> AbstractContextManager[Transaction]:
        """A snapshot: all reads inside see the same transaction."""

    def write(self) -> AbstractContextManager[Transaction]:
        """One write transaction of the current writer; Fenced if that is another process."""

    def close(self) -> None: ...
