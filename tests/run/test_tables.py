"""A table is reloaded when its content changes, for all layers at once, and its version is told."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.compile.plan import TablePlan
from headrace.core.address import StoreAddress
from headrace.core.errors import NotFound
from headrace.run.tables import Tables, version_of
from headrace.serving.opening import open_store

PAGES = TablePlan("pages", "url STRING, section STRING", "csv", "pages.csv")


class Speed:
    def __init__(self) -> None:
        self.between_epochs = threading.Lock()


class Reloading:
    """A pipeline that says what it reloads, and whether epochs were held."""

    def __init__(self) -> None:
        self.speed = Speed()
        self.reloaded: list[tuple[str, bool]] = []
        self.kept: list[pa.Table] = []

    def reads(self, table: str) -> bool:
        return table == "pages"

    def keep_rows(self, table: str, rows: pa.Table) -> None:
        self.kept.append(rows)

    def reload(self, table: TablePlan) -> None:
        self.reloaded.append((table.name, self.speed.between_epochs.locked()))


class Desk:
    def __init__(self, folder: Path) -> None:
        self.file, self.unreadable = folder / "pages.csv", False
        self.write("url,section\n/a,shop\n")
        self.store = open_store(StoreAddress.of_file(folder / "serving.db"))
        self.store.take_over()
        self.pipelines = {"clicks": Reloading(), "clicks+orders": Reloading()}
        self.tables = Tables([PAGES], folder, self.pipelines, self.store, self.read)  # type: ignore[arg-type]

    def read(self, table: TablePlan) -> pa.Table:
        if self.unreadable:
            raise ValueError("a row has too many columns")
        return pa.table({"line": self.file.read_text("utf-8").splitlines()})

    def write(self, text: str) -> None:
        self.file.write_text(text, "utf-8")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_file_that_stays_is_not_read_again(desk: Desk) -> None:
    assert desk.tables.reload("pages") is None
    assert desk.pipelines["clicks"].reloaded == []


def test_a_changed_file_is_reloaded_by_all_pipelines_between_two_epochs(desk: Desk) -> None:
    desk.write("url,section\n/a,shop\n/b,blog\n")
    assert desk.tables.reload("pages") == version_of(desk.file)
    assert [p.reloaded for p in desk.pipelines.values()] == [[("pages", True)]] * 2
    assert desk.store.tables()["pages"][0] == version_of(desk.file)
    assert desk.tables.reload("pages") is None


def test_the_same_content_written_again_is_the_same_version(desk: Desk) -> None:
    loaded_at = desk.store.tables()["pages"][1]
    desk.write(desk.file.read_text("utf-8"))
    assert desk.tables.reload("pages") is None
    assert desk.pipelines["clicks"].reloaded == []
    assert desk.store.tables()["pages"][1] == loaded_at


def test_a_file_that_is_gone_is_told_and_found_again_when_it_is_back(desk: Desk) -> None:
    desk.file.unlink()
    with pytest.raises(NotFound):
        desk.tables.reload("pages")
    desk.write("url,section\n")
    assert desk.tables.reload("pages") == version_of(desk.file)


def test_a_table_that_could_not_be_reloaded_is_tried_until_it_can(desk: Desk) -> None:
    before = desk.store.tables()["pages"]
    desk.write("url,section\n/a,shop,more\n")
    desk.unreadable = True
    for _ in range(3):
        with pytest.raises(ValueError, match="too many columns"):
            desk.tables.reload("pages")
    assert desk.store.tables()["pages"] == before, "the version in use is what it was"
    desk.unreadable = False
    assert desk.tables.reload("pages") == version_of(desk.file)
    assert desk.store.tables()["pages"][0] == version_of(desk.file)


def test_a_folder_is_one_table_without_its_marks(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x")
    before = version_of(tmp_path)
    (tmp_path / "_SUCCESS").write_text("")
    assert version_of(tmp_path) == before
    (tmp_path / "b.csv").write_text("y")
    assert version_of(tmp_path) != before


def test_rows_are_read_once_and_kept_until_the_table_changes(desk: Desk) -> None:
    desk.write("url,section\n/a,home\n")
    assert desk.tables.reload("pages") is not None
    for pipeline in desk.pipelines.values():
        kept = [rows["line"].to_pylist()[-1] for rows in pipeline.kept]
        assert kept == ["/a,shop", "/a,home"]
