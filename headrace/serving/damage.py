"""The damage of a store: every row that has a checksum is read and compared.

tests/serving/test_damage.py flips a bit of each kind of row; `headrace verify` says which it found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headrace.core.errors import CorruptStore
from headrace.serving.carried import checked_state, state_tables
from headrace.serving.catalog import read_versions
from headrace.serving.database import Transaction
from headrace.serving.runs import decoded
from headrace.serving.table_rows import read_rows


def damages(db: Transaction) -> Iterator[CorruptStore]:
    """What is damaged. Runs are read one by one, because a database may be larger than memory."""
    for (id,) in db.execute("SELECT id FROM _runs ORDER BY id").fetchall():
        sql = "SELECT version, first, last, rows, checksum FROM _runs WHERE id = ?"
        yield from _damage(decoded, *db.execute(sql, (id,)).fetchone())
    for (name,) in db.execute("SELECT name FROM _table_rows ORDER BY name").fetchall():
        yield from _damage(read_rows, db, name)
    for (stream,) in db.execute("SELECT name FROM _streams ORDER BY name").fetchall():
        for version in read_versions(db, stream):
            tables = state_tables(version.name, version.id) if version.plan.carry else ()
            for table in tables:
                for row in db.execute(f"SELECT * FROM {table}"):
                    yield from _damage(checked_state, version.name, *row)


def _damage(read: Callable[..., object], *arguments: object) -> Iterator[CorruptStore]:
    try:
        read(*arguments)
    except CorruptStore as error:
        yield error
