"""A copy of one version of a master: a table of its own, with one commit, and the same files.

Files are named by their digests, which are compared while they are copied, so damage is never
backed up. A copy may take longer than replaced files are kept, so hard links keep the version's
files. tests/master/test_copy.py reads the copy.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from headrace.core.files import copy_file
from headrace.core.position import PositionRange
from headrace.master.parquet import corrupt
from headrace.master.table import MasterTable, added_fields, declared_fields
from headrace.master.version import MasterVersion


def link_files(version: MasterVersion, links: Path) -> None:
    """Keep the files of a version by hard links, whatever a vacuum removes. Where the file system
    has no links, the files are copied from their own path.
    """
    for file in version.files:
        with suppress(OSError):
            links.mkdir(parents=True, exist_ok=True)
            os.link(file.path, links / file.digest)


def copy_master(version: MasterVersion, target: Path, links: Path) -> None:
    """Create a table at `target` with the rows, position and event times of a version, from the
    files that are linked in a folder, or else from their own path.
    """
    files = version.files
    for file in files:
        linked = links / file.digest
        try:
            source = linked if linked.exists() else Path(file.path)
            digest = copy_file(source, target / version.name_of(file))
        except FileNotFoundError:
            raise corrupt(file, "it is missing") from None
        if digest != file.digest:
            raise corrupt(file, "its checksum does not match")
    partitions = len(version.position.offsets)
    table = _create(pa.schema(version.delta.schema()), target, partitions)
    if table.newest().position != version.position:
        named = [replace(file, path=version.name_of(file)) for file in files]
        table.append(PositionRange.before(version.position), named, version.highs)


def _create(schema: pa.Schema, target: Path, partitions: int) -> MasterTable:
    """A table whose columns were added in the same order, which a repair requires."""
    declared, added = declared_fields(schema), added_fields(schema)
    first = pa.schema([field for field in declared if field.name not in added])
    MasterTable(target, first, partitions).newest()
    return MasterTable(target, declared, partitions)
