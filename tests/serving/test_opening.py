"""A store is opened, found and read by its address, on every database."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from headrace.core.address import StoreAddress
from headrace.core.errors import Unsupported
from headrace.serving.catalog import read_plan
from headrace.serving.opening import open_store, read_store, store_exists
from headrace.serving.store_tables import STORE

from .bench import CLICKS, PLAN, Bench
from .databases import address_of, as_version_1
from .marks import on_every_database

pytestmark = on_every_database


def test_whether_there_is_a_store_is_known_without_making_one(tmp_path: Path) -> None:
    address = address_of(tmp_path / "serving.db")
    assert not store_exists(address)
    assert not store_exists(address)
    open_store(address).close()
    assert store_exists(address)


def test_a_snapshot_needs_no_writer_and_changes_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "serving.db")
    with read_store(address_of(bench.path)) as db:
        assert read_plan(db) == PLAN
    assert bench.send(*CLICKS[:1]), "the writer is not fenced"
    bench.close()


def test_a_store_of_an_earlier_version_is_read_and_not_modified(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "serving.db")
    version = "SELECT value FROM _meta WHERE key = 'schema_version'"
    with bench.store.write() as writing:
        as_version_1(writing)
    with read_store(address_of(bench.path)) as db:
        assert db.execute(version).fetchone() == (str(STORE.versions.newest),)
        assert read_plan(db) == PLAN
    with bench.store.read() as db:
        assert db.execute(version).fetchone() == ("1",)
    bench.close()


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("headrace.serving.postgres", raising=False)
    monkeypatch.setitem(sys.modules, "headrace.serving.postgres", None)
    with pytest.raises(Unsupported) as caught:
        open_store(StoreAddress.of_postgres("postgresql://db/events", "shop"))
    assert caught.value.message == (
        "the store is in PostgreSQL, but the PostgreSQL driver is not installed"
    )
    assert caught.value.hint == "install it: pip install 'headrace[postgres]'"
