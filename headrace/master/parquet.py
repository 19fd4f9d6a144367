"""The Parquet files of a master. A file is named by the SHA-256 of its bytes, so the Delta log,
which lists the files of a version, fixes their content.

Readers of whole files (builds, audits, queries, compaction) hash them first; readers of a few pages
at a time hash a file once and verify the page checksums at every read. Damage is CorruptMaster,
which names the file and its offsets, and never a wrong answer.
tests/master/test_damage.py flips bits all over a file, for each reader.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headrace.core.errors import CorruptMaster
from headrace.core.event import OFFSET
from headrace.core.files import digest_of, make_folder, sync
from headrace.master.version import MasterFile, folder_of


class FileWriter:
    """Writes one file: the rows of one status, day and partition, in the order of the log."""

    def __init__(self, master: Path, schema: pa.Schema, place: tuple[str, str, int]) -> None:
        self._master, self._schema, self._place = master, schema, place
        self._folder = folder_of(*place)
        # The name must match what a vacuum removes, in case this process is killed.
        self._draft = master / self._folder / f"{uuid.uuid4().hex}.parquet"
        make_folder(self._draft.parent)
        self._writer = pq.ParquetWriter(
            self._draft, schema, compression="zstd", write_page_checksum=True
        )
        self._rows, self._first, self._after = 0, 0, 0

    def write(self, rows: pa.Table) -> None:
        if not len(rows):
            return
        self._first = self._first if self._rows else rows[OFFSET][0].as_py()
        self._after = rows[OFFSET][-1].as_py() + 1
        self._rows += len(rows)
        self._writer.write_table(rows.select(self._schema.names).cast(self._schema))

    def close(self) -> MasterFile:
        """Make the file durable under its final name, before a commit references it."""
        self._writer.close()
        sync(self._draft)
        name = f"{self._folder}/{digest_of(self._draft)}.parquet"
        path = self._draft.replace(self._master / name)
        sync(path.parent)
        size = path.stat().st_size
        return MasterFile(name, self._rows, size, *self._place, self._first, self._after)


def damage_of(file: MasterFile) -> str | None:
    """The damage of a file; None if its bytes are those that were written."""
    try:
        return None if digest_of(Path(file.path)) == file.digest else "its checksum does not match"
    except FileNotFoundError:
        return "it is missing"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"


def verify_files(files: Iterable[MasterFile]) -> list[str]:
    """The paths of these files; CorruptMaster if the bytes of one have changed."""
    paths = []
    for file in files:
        if damage := damage_of(file):
            raise corrupt(file, damage)
        paths.append(file.path)
    return paths


def corrupt(file: MasterFile, damage: str) -> CorruptMaster:
    return CorruptMaster(
        f"a file of the master dataset of '{file.stream}' is damaged: {damage}",
        detail=f"it contains {file.rows} records of partition {file.partition} with offsets "
        f"[{file.first_offset}, {file.next_offset}) and the status '{file.status}'.",
        hint="run `headrace verify --repair`, which rewrites it if the log still has its events; "
        "otherwise restore a backup.",
        origin=file.path,
    )


def read_rows(
    files: Sequence[MasterFile],
    schema: pa.Schema,
    columns: Sequence[str],
    where: pc.Expression | None = None,
) -> pa.Table:
    """Rows of these files. A column that was declared later than a file was written is NULL."""
    with _damage_named(files):
        return _dataset(files, schema).to_table(columns=list(columns), filter=where)


def read_in_order(
    files: Sequence[MasterFile],
    columns: pa.Schema | list[str],
    where: pc.Expression | None = None,
) -> Iterator[pa.RecordBatch]:
    """Rows of these files, streamed file by file: the columns of a schema, or columns that every
    file has.
    """
    schema = columns if isinstance(columns, pa.Schema) else None
    names = columns.names if isinstance(columns, pa.Schema) else columns
    with _damage_named(files):
        yield from _dataset(files, schema).to_batches(
            columns=names, filter=where, batch_readahead=1, fragment_readahead=1
        )


def _dataset(files: Sequence[MasterFile], schema: pa.Schema | None) -> Any:
    # This imports pandas, which takes half a second; most processes do not need it.
    import pyarrow.dataset as ds

    options = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
    verified = ds.ParquetFileFormat(default_fragment_scan_options=options)
    return ds.dataset([file.path for file in files], schema=schema, format=verified)


@contextlib.contextmanager
def _damage_named(files: Sequence[MasterFile]) -> Iterator[None]:
    """If reading fails because a file is damaged, raise the error that names the file."""
    try:
        yield
    except (OSError, pa.ArrowException):
        verify_files(files)
        raise
