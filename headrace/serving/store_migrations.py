"""How a store of an earlier version of the tables gets those of the next one.

tests/run/test_formats.py migrates stores that earlier versions wrote.
"""

from __future__ import annotations

import json

from headrace.core.migrations import SqlConnection
from headrace.serving.carried import state_checksum, state_tables
from headrace.serving.checksums import checksum_of


def add_checksums(db: SqlConnection) -> None:
    """Version 2 has a checksum in each row with bytes; what is there now counts as undamaged."""
    for table in ("_runs", "_table_rows"):
        db.execute(f"ALTER TABLE {table} ADD COLUMN checksum INTEGER")
    # One by one, because a database may be larger than memory.
    for (id,) in db.execute("SELECT id FROM _runs").fetchall():
        found = db.execute("SELECT first, last, rows FROM _runs WHERE id = ?", (id,)).fetchone()
        checksum = checksum_of(found[:2], found[2])
        db.execute("UPDATE _runs SET checksum = ? WHERE id = ?", (checksum, id))
    for name, rows in db.execute("SELECT name, rows FROM _table_rows").fetchall():
        sql = "UPDATE _table_rows SET checksum = ? WHERE name = ?"
        db.execute(sql, (checksum_of((name,), rows), name))
    for name, version, plan in db.execute("SELECT name, version, plan FROM _views").fetchall():
        for table in state_tables(name, version) if json.loads(plan).get("carry") else ():
            _add_state_checksums(db, table)


def _add_state_checksums(db: SqlConnection, table: str) -> None:
    states = db.execute(f"SELECT * FROM {table}").fetchall()
    db.execute(f"ALTER TABLE {table} ADD COLUMN _checksum INTEGER")
    for state in states:
        checksum = state_checksum(*state)
        db.execute(f"UPDATE {table} SET _checksum = ? WHERE _key = ?", (checksum, state[0]))
