"""The protocol of a database: transactions, one fenced writer, and SQL.

SQL is written in what SQLite and PostgreSQL have in common (`ON CONFLICT`, `RETURNING`, parameters
as `?` or `?1`); placeholders, types and errors are the implementation's. Only this package imports
a driver or writes SQL. tests/serving runs on both databases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from headrace.serving.changes import ChangedKeys, Changes

Parameters = Sequence[Any]


class Rows(Protocol):
    """The result of a statement, and how many rows it has changed."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Transaction(Protocol):
    """Reads see one snapshot; writes are committed at its end, all or none."""

    changed: ChangedKeys  # the keys of rows of views that it writes
    changes: Changes  # of the newest commits

    def execute(self, sql: str, parameters: Parameters = (), /) -> Rows: ...
    def listed(self, values: Sequence[str]) -> tuple[str, Any]:
        """A SELECT of these values as a column `value`, and its one parameter: there may be more
        values than a statement can have parameters.
        """

    def executemany(self, sql: str, rows: Iterable[Parameters], /) -> Rows: ...


class Database(Protocol):
    """The database of one project."""

    token: int  # of this process as a writer; 0 until it has taken over
    changes: Changes

    def take_over(self) -> None:
        """Become the writer; an earlier writer is fenced from now on."""

    def read(self) -> AbstractContextManager[Transaction]:
        """A snapshot: all reads inside see the same transaction."""

    def write(self) -> AbstractContextManager[Transaction]:
        """One write transaction of the current writer; Fenced if that is another process."""

    def close(self) -> None: ...
