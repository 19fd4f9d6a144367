"""Read the whole state and compare it with its checksums: the blocks of the log, the files of the
master, the databases, and the rows of the store.

Each damaged file is reported with its offsets, and the rest is still read. Verifying changes
nothing and may be done while the project runs. A repair writes damaged files of the master again
from the log, with the schema of the deployed plan, and requires a stopped project.
tests/run/test_verify.py damages each part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq

from headrace.compile.plan import StreamPlan
from headrace.core.address import FILE, StoreAddress
from headrace.core.errors import CorruptLog, CorruptMaster, HeadraceError, NotFound, Unavailable
from headrace.core.event import OFFSET
from headrace.core.position import Interval
from headrace.define.layout import Layout
from headrace.log.opening import logs_in, open_reader
from headrace.log.protocol import LogReader
from headrace.master.parquet import damage_of
from headrace.master.repair import repair as repair_file
from headrace.master.version import MasterFile, newest_version
from headrace.run.lock import RunLock
from headrace.run.state_check import has_writer, inconsistencies
from headrace.serving.catalog import read_plan
from headrace.serving.damage import damages
from headrace.serving.opening import read_store, store_exists
from headrace.serving.sqlite_files import integrity_errors


@dataclass(frozen=True, slots=True)
class Damage:
    """One damaged file; `offsets` are those of the records in it."""

    part: str  # log, master, store or users
    path: str
    problem: str
    stream: str | None = None
    partition: int | None = None
    offsets: tuple[int, int] | None = None
    repaired: bool = False


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """How much was read, and which files are damaged."""

    log_events: int = 0
    log_bytes: int = 0
    master_records: int = 0
    master_files: int = 0
    master_bytes: int = 0
    damages: tuple[Damage, ...] = ()

    @property
    def sound(self) -> bool:
        return all(damage.repaired for damage in self.damages)

    def with_damage(self, *damages: Damage) -> VerifyResult:
        return replace(self, damages=(*self.damages, *damages))


def verify(layout: Layout, *, repair: bool = False) -> VerifyResult:
    """Read the whole state; with `repair`, write damaged files of the master again."""
    if not repair:
        return _verify(layout, None, written=has_writer(layout))
    lock = RunLock(layout)
    lock.acquire()
    try:
        return _verify(layout, _deployed(layout), written=False)
    finally:
        lock.release()


def _deployed(layout: Layout) -> dict[str, StreamPlan]:
    """The deployed plan of each stream."""
    if not store_exists(layout.store):
        return {}
    try:
        with read_store(layout.store) as db:
            plan = read_plan(db)
    except Unavailable:
        return {}  # a damaged store is reported below
    return {stream.name: stream for stream in plan.streams} if plan else {}


def _verify(
    layout: Layout, plans: Mapping[str, StreamPlan] | None, *, written: bool
) -> VerifyResult:
    result = VerifyResult()
    for name, partitions in logs_in(layout.logs).items():
        try:
            reader = open_reader(layout.log(name), written=written)
            result = _verify_log(result, name, reader)
            result = result.with_damage(*_inconsistencies(layout, name, partitions, reader))
        except CorruptLog as error:
            problem = f"{error.message}: {error.detail}"
            result = result.with_damage(Damage("log", str(error.origin), problem, name))
        result = _verify_master(result, layout, name, partitions, plans)
    result = result.with_damage(*_verify_database("users", layout.access))
    return result.with_damage(*_verify_store(layout.store))


def _inconsistencies(
    layout: Layout, stream: str, partitions: int, reader: LogReader
) -> Iterator[Damage]:
    place = layout.log(stream).place
    with suppress(CorruptMaster):  # which is reported with the master
        for found in inconsistencies(layout, stream, partitions, reader):
            yield Damage("log", place, found.problem, stream, found.partition, found.offsets)


def _verify_log(result: VerifyResult, stream: str, reader: LogReader) -> VerifyResult:
    for partition in range(reader.partitions):
        for part in reader.parts(partition):
            held = part.interval
            try:
                events = sum(block.count for block in reader.blocks(partition, held))
            except NotFound:
                continue  # retention has removed it in the meantime
            except CorruptLog as error:
                problem, offsets = f"{error.message}: {error.detail}", (held.lower, held.upper)
                damage = Damage("log", part.place, problem, stream, partition, offsets)
                result = result.with_damage(damage)
            else:
                result = replace(
                    result,
                    log_events=result.log_events + events,
                    log_bytes=result.log_bytes + part.bytes,
                )
    return result


def _verify_master(
    result: VerifyResult,
    layout: Layout,
    stream: str,
    partitions: int,
    plans: Mapping[str, StreamPlan] | None,
) -> VerifyResult:
    try:
        version = newest_version(layout.master(stream), partitions)
        files = version.files if version else ()
    except CorruptMaster as error:
        return result.with_damage(Damage("master", str(error.origin), error.message, stream))
    for file in sorted(files, key=lambda file: (file.partition, file.first_offset)):
        if problem := damage_of(file) or _inconsistency(file):
            offsets = (file.first_offset, file.next_offset)
            damage = Damage("master", file.path, problem, stream, file.partition, offsets)
            if plans is not None:
                damage = _repaired(layout, plans.get(stream), file, damage)
            result = result.with_damage(damage)
        else:
            result = replace(
                result,
                master_records=result.master_records + file.rows,
                master_files=result.master_files + 1,
                master_bytes=result.master_bytes + file.bytes,
            )
    return result


def _inconsistency(file: MasterFile) -> str | None:
    """How an intact file differs from its entry in the Delta log."""
    metadata = pq.read_metadata(file.path)
    place = metadata.schema.names.index(OFFSET)
    groups = [
        metadata.row_group(n).column(place).statistics for n in range(metadata.num_row_groups)
    ]
    found = Interval(min(g.min for g in groups), max(g.max for g in groups) + 1)
    if (metadata.num_rows, found) == (file.rows, Interval(file.first_offset, file.next_offset)):
        return None
    return (
        f"the Delta log lists {file.rows} records with offsets "
        f"[{file.first_offset}, {file.next_offset}), but the file contains {metadata.num_rows} "
        f"with offsets [{found.lower}, {found.upper})"
    )


def _repaired(layout: Layout, plan: StreamPlan | None, file: MasterFile, damage: Damage) -> Damage:
    try:
        if plan is None:
            raise NotFound("the store has no deployed plan of the stream")
        repair_file(plan, layout.log(plan.name), layout.master(plan.name), file)
    except HeadraceError as error:
        return replace(damage, problem=f"{damage.problem}; not repaired: {error.message}")
    return replace(damage, repaired=True)


def _verify_store(address: StoreAddress) -> Iterator[Damage]:
    """What the database's own check finds, which PostgreSQL does itself; then damaged rows."""
    damaged = list(_verify_database("store", address.path)) if address.kind == FILE else []
    yield from damaged
    if damaged or not store_exists(address):
        return
    try:
        with read_store(address) as db:
            for error in damages(db):
                yield Damage("store", str(address), error.message)
    except Unavailable as error:
        yield Damage("store", str(address), error.message)


def _verify_database(part: str, path: Path) -> Iterator[Damage]:
    if not path.exists():
        return
    if found := integrity_errors(path):
        yield Damage(part, str(path), "; ".join(found))
