"""Reloads tables while the project runs, when their files change.

A version is a short hash of a table's content. Batch and speed switch to a new version together,
between two epochs, and answers name the version in use. Events that were processed before keep the
values of the old version: a table has no log, so old versions are not available. `headrace rebuild`
processes all events of a view again with the current version. tests/run/test_tables.py checks
which changes are detected, and when.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa

from headrace.compile.plan import TablePlan
from headrace.core.rule import hidden
from headrace.run.pipeline import Pipeline
from headrace.serving.store import Store
from headrace.spark.relations import table_path

Signature = tuple[tuple[str, int, int], ...]
ReadTable = Callable[[TablePlan], "pa.Table | None"]  # the rows of a small table


class Tables:
    """The tables of a running project."""

    def __init__(
        self,
        tables: Iterable[TablePlan],
        folder: Path,
        pipelines: Mapping[str, Pipeline],
        store: Store,
        read: ReadTable,
        before: Tables | None = None,
    ) -> None:
        self.folder, self.pipelines, self.store, self.read = folder, pipelines, store, read
        self.tables = {table.name: table for table in tables}
        self._signature: dict[str, Signature] = {}
        self._version: dict[str, str] = {}
        for name, table in self.tables.items():
            if before is not None and before.tables.get(name) == table:
                # The running sessions have this content, even if the file has changed since.
                self._signature[name], self._version[name] = (
                    before._signature[name],
                    before._version[name],
                )
            else:
                self._load(table)

    def reload(self, name: str) -> str | None:
        """Reload a table if its content has changed; returns its new version. If it fails, the old
        content stays in use, and the next call tries again.
        """
        table = self.tables[name]
        changed = self._changed(table) and self._reloaded(table)
        return self._version[name] if changed else None

    def replace(self, names: Collection[str], change: Callable[[], None]) -> None:
        """Change the content of tables between two epochs, so that each epoch reads one version."""
        with between_epochs(self.pipelines.values()):
            change()
            for name in names:
                for pipeline in self.pipelines.values():
                    if pipeline.reads(name):
                        pipeline.reload(self.tables[name])
                self._load(self.tables[name])

    def _changed(self, table: TablePlan) -> bool:
        return signature(table_path(table, self.folder)) != self._signature[table.name]

    def _reloaded(self, table: TablePlan) -> bool:
        before = self._version[table.name]
        if version_of(table_path(table, self.folder)) != before:
            with between_epochs(self.pipelines.values()):
                for pipeline in self.pipelines.values():
                    pipeline.reload(table)
        self._load(table)
        return self._version[table.name] != before

    def _load(self, table: TablePlan) -> None:
        path = table_path(table, self.folder)
        files, version = signature(path), version_of(path)
        # Constants of watches are not stored: only streams are joined with them, and they change
        # often.
        rows = None if hidden(table.name) else self.read(table)
        self.store.record_table(table.name, version, rows)
        for pipeline in self.pipelines.values():
            if rows is not None and pipeline.reads(table.name):
                pipeline.keep_rows(table.name, rows)
        # Last, so that a table that could not be read or stored is reloaded again.
        self._signature[table.name], self._version[table.name] = files, version


@contextmanager
def between_epochs(pipelines: Iterable[Pipeline]) -> Iterator[None]:
    """A context in which no epoch of these pipelines runs."""
    with ExitStack() as stack:
        for pipeline in pipelines:
            stack.enter_context(pipeline.speed.between_epochs)
        yield


def signature(path: Path) -> Signature:
    """Names, sizes and modification times of the files; cheaper than a hash."""
    found = [(file, file.stat()) for file in _files(path)]
    return tuple((str(file), stat.st_size, stat.st_mtime_ns) for file, stat in found)


def version_of(path: Path) -> str:
    """A short hash of the content of a file, or of all files in a folder."""
    whole = hashlib.sha256()
    for file in _files(path):
        whole.update(hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()[:12]


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    # Spark ignores files with these prefixes, and writes markers such as _SUCCESS.
    return sorted(f for f in path.rglob("*") if f.is_file() and f.name[0] not in "._")
