"""A flipped bit in the bytes of the store is reported by whoever reads them, and never answered
from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from headrace.core.errors import CorruptStore
from headrace.serving.carried import state_tables
from headrace.serving.damage import damages
from headrace.serving.finish import read_cached
from headrace.serving.store import CarriedEpoch
from headrace.serving.table_rows import read_rows

from .bench import CLICKS, Bench, plan_of
from .databases import as_version_1, open_store
from .marks import on_every_database
from .test_set_aside import SQL, carried
from .test_table_rows import PAGES, ROWS

pytestmark = on_every_database

FLIPS = 40


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Bench]:
    """Runs, the rows of a table, and a state."""
    bench = Bench(
        tmp_path / "serving.db", msgspec.structs.replace(plan_of(SQL), tables=(PAGES,)), SQL
    )
    bench.build()
    (version,) = carried(bench)
    states = CarriedEpoch([("ann", 5, 7, b"three rows of ann", None)])
    epoch = bench.epoch(*CLICKS)
    rows = epoch.rows | {version.id: pa.table({})}
    bench.store.commit_epoch(replace(epoch, rows=rows, carried={version.id: states}))
    bench.store.close_group("clicks")
    bench.store.record_table("pages_of", "v1", ROWS)
    yield bench
    bench.close()


def by_view(bench: Bench) -> object:
    plan = bench.plan.view("total")
    assert plan is not None
    with bench.store.read() as db:
        return read_cached(db, plan)


def by_audit(bench: Bench) -> object:
    [total] = [version for version in bench.store.versions("clicks") if version.name == "total"]
    return bench.store.audit_staged(bench.stage(total, True, CLICKS), 1)


def by_table(bench: Bench) -> object:
    with bench.store.read() as db:
        return read_rows(db, "pages_of")


def by_states(bench: Bench) -> object:
    (version,) = carried(bench)
    return bench.store.states(version, ["ann"], None, at_boundary=False)


def by_verify(bench: Bench) -> object:
    with bench.store.read() as db:
        for error in damages(db):
            raise error
    return None


def run(bench: Bench) -> str:
    return "_runs"


def table(bench: Bench) -> str:
    return "_table_rows"


def state(bench: Bench) -> str:
    (version,) = carried(bench)
    return state_tables(version.name, version.id)[1]


Name = Callable[[Bench], str]
Read = Callable[[Bench], object]
READERS: list[tuple[Name, str, Read]] = [
    (run, "rows", by_view),
    (run, "rows", by_audit),
    (run, "rows", by_verify),
    (table, "rows", by_table),
    (table, "rows", by_verify),
    (state, "_state", by_states),
    (state, "_state", by_verify),
]


def row(bench: Bench, name: Name) -> str:
    """The table of a damaged row, and the condition that finds it."""
    if name is not run:
        return name(bench)
    plan = bench.plan.view("total")
    assert plan is not None
    return f"_runs WHERE version = '{plan.stored_name}' AND layer = 'speed'"


def read(bench: Bench, name: Name, column: str) -> bytes:
    sql = f"SELECT {column} FROM {row(bench, name)}"
    with bench.store.read() as db:
        [(value,)] = db.execute(sql).fetchall()
    return bytes(value)


def write(bench: Bench, name: Name, column: str, value: object) -> None:
    table, _, condition = row(bench, name).partition(" WHERE ")
    sql = f"UPDATE {table} SET {column} = ? WHERE {condition or 'true'}"
    with bench.store.write() as db:
        assert db.execute(sql, (value,)).rowcount == 1


@pytest.mark.parametrize(("name", "column", "reader"), READERS)
def test_every_reader_refuses_a_flipped_bit_wherever_it_is(
    filled: Bench, name: Name, column: str, reader: Read
) -> None:
    reader(filled)
    data = read(filled, name, column)
    for at in range(0, len(data), len(data) // FLIPS + 1):
        write(filled, name, column, data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
        with pytest.raises(CorruptStore, match="the store is damaged: the checksum of "):
            reader(filled)
    write(filled, name, column, data)
    reader(filled)


@pytest.mark.parametrize(
    ("name", "column", "value"),
    [
        (run, "first", '["/b"]'),
        (run, "last", '["/b"]'),
        (run, "checksum", None),
        (state, "_time", 4),
        (state, "_seq", 3),
        (state, "_timer", 9),
    ],
)
def test_what_bytes_are_found_by_is_checked_too(
    filled: Bench, name: Name, column: str, value: object
) -> None:
    write(filled, name, column, value)
    with pytest.raises(CorruptStore):
        by_verify(filled)


def test_the_error_says_what_is_damaged_and_what_to_do(filled: Bench) -> None:
    write(filled, table, "rows", b"")
    with pytest.raises(CorruptStore) as caught:
        by_table(filled)
    assert str(caught.value) == (
        "CorruptStore: the store is damaged: the checksum of the rows of table 'pages_of' does not "
        "match\n"
        "  detail: nothing is computed from it.\n"
        "  hint: restore a backup; or move it away and start the project: answers are "
        "computed again from the master; acknowledgements, and rules that were added to the "
        "running project, are lost."
    )


def test_a_store_of_version_1_gets_checksums(filled: Bench) -> None:
    (version,) = carried(filled)
    with filled.store.write() as db:
        as_version_1(db, state_tables(version.name, version.id))
    filled.close()
    filled.store = open_store(filled.path)
    for reader in (by_view, by_table, by_states, by_verify):
        reader(filled)
