"""Tables are reloaded when their files change, while the project runs.

A version is a short hash of a table's content. All layers take a new one at the same moment,
between two epochs, and answers say which one is in use. Events that were counted before keep the
values they met: a table has no log, so what it said in the past is not known any more. `headrace
rebuild` counts a view again with what the table says now. tests/run/test_tables.py checks what is
noticed, and when.
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
ReadTable = Callable[[TablePlan], "pa.Table | None"]  # a table's rows, if they are not too many


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
        self._seen: dict[str, Signature] = {}
        self._version: dict[str, str] = {}
        for name, table in self.tables.items():
            if before is not None and before.tables.get(name) == table:
                # What runs on has this content, whatever the file says by now.
                self._seen[name], self._version[name] = before._seen[name], before._version[name]
            else:
                self._note(table)

    def reload(self, name: str) -> str | None:
        """Reload a table whose content has changed; its new version. If it fails, the content in
        use is what it was, and the next call tries again.
        """
        table = self.tables[name]
        changed = self._changed(table) and self._reloaded(table)
        return self._version[name] if changed else None

    def replace(self, names: Collection[str], change: Callable[[], None]) -> None:
        """Change the content of tables between two epochs, so that it is known from which event
        on it counts.
        """
        with between_epochs(self.pipelines.values()):
            change()
            for name in names:
                for pipeline in self.pipelines.values():
                    if pipeline.reads(name):
                        pipeline.reload(self.tables[name])
                self._note(self.tables[name])

    def _changed(self, table: TablePlan) -> bool:
        return signature(table_path(table, self.folder)) != self._seen[table.name]

    def _reloaded(self, table: TablePlan) -> bool:
        before = self._version[table.name]
        if version_of(table_path(table, self.folder)) != before:
            with between_epochs(self.pipelines.values()):
                for pipeline in self.pipelines.values():
                    pipeline.reload(table)
        self._note(table)
        return self._version[table.name] != before

    def _note(self, table: TablePlan) -> None:
        path = table_path(table, self.folder)
        seen, version = signature(path), version_of(path)
        # The constants of watches are joined with streams alone, and change often.
        rows = None if hidden(table.name) else self.read(table)
        self.store.record_table(table.name, version, rows)
        # Last, so that a table that could not be read or stored is still to be reloaded.
        self._seen[table.name], self._version[table.name] = seen, version


@contextmanager
def between_epochs(pipelines: Iterable[Pipeline]) -> Iterator[None]:
    """No epoch of these runs meanwhile."""
    with ExitStack() as stack:
        for pipeline in pipelines:
            stack.enter_context(pipeline.speed.between_epochs)
        yield


def signature(path: Path) -> Signature:
    """What changes when a file is written, and costs nothing to read."""
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
    # Spark passes over names that begin so, and writes its own marks there.
    return sorted(f for f in path.rglob("*") if f.is_file() and f.name[0] not in "._")
