"""Everything that is kept is read and compared with its checksums: the blocks of the log, the files
of the master, and the databases.

Damage is told with the file and the offsets in it, and the rest is read all the same. Verifying
changes nothing and may be done beside a running project. A repair writes what the log still has
into the master again, read as the project was last deployed, whatever its files say now, and needs
the project stopped. tests/run/test_verify.py damages each part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq

from headrace.compile.plan import StreamPlan
from headrace.core.errors import CorruptLog, CorruptMaster, HeadraceError, NotFound, Unavailable
from headrace.core.event import OFFSET
from headrace.core.position import Interval
from headrace.define.layout import Layout
from headrace.log.opening import open_reader
from headrace.log.protocol import LogReader
from headrace.master.parquet import damage_of
from headrace.master.repair import repair
from headrace.master.version import MasterFile, newest_version
from headrace.run.lock import RunLock
from headrace.run.parts import contradictions, is_written, topics_of
from headrace.serving.catalog import read_plan
from headrace.serving.sqlite_files import damages, peek


@dataclass(frozen=True, slots=True)
class Damage:
    """One file that is not what it was; `offsets` are those of the records in it."""

    part: str  # log, master, store or users
    path: str
    problem: str
    stream: str | None = None
    partition: int | None = None
    offsets: tuple[int, int] | None = None
    repaired: bool = False


@dataclass(frozen=True, slots=True)
class Verified:
    """What was read, and what of it is damaged."""

    log_events: int = 0
    log_bytes: int = 0
    master_records: int = 0
    master_files: int = 0
    master_bytes: int = 0
    damages: tuple[Damage, ...] = ()

    @property
    def sound(self) -> bool:
        return all(damage.repaired for damage in self.damages)

    def with_damage(self, *damages: Damage) -> Verified:
        return replace(self, damages=(*self.damages, *damages))


def verify(layout: Layout, *, mend: bool = False) -> Verified:
    """Read all that a project keeps; if it is to be mended, write damaged files of the master
    again.
    """
    if not mend:
        return _verify(layout, None, written=is_written(layout))
    lock = RunLock(layout)
    lock.take()
    try:
        return _verify(layout, _deployed(layout), written=False)
    finally:
        lock.release()


def _deployed(layout: Layout) -> dict[str, StreamPlan]:
    """How the records of each stream were read when they were archived."""
    if not layout.store.is_file():
        return {}
    try:
        with peek(layout.store) as db:
            plan = read_plan(db)
    except Unavailable:
        return {}  # a damaged store is told of below
    return {stream.name: stream for stream in plan.streams} if plan else {}


def _verify(layout: Layout, mend: Mapping[str, StreamPlan] | None, *, written: bool) -> Verified:
    result = Verified()
    for name, partitions in topics_of(layout).items():
        try:
            reader = open_reader(layout.log(name), written=written)
            result = _verify_log(result, name, reader)
            result = result.with_damage(*_contradictions(layout, name, partitions, reader))
        except CorruptLog as error:
            problem = f"{error.message}: {error.detail}"
            result = result.with_damage(Damage("log", str(error.origin), problem, name))
        result = _verify_master(result, layout, name, partitions, mend)
    for part, path in (("store", layout.store), ("users", layout.access)):
        result = result.with_damage(*_verify_database(part, path))
    return result


def _contradictions(
    layout: Layout, stream: str, partitions: int, reader: LogReader
) -> Iterator[Damage]:
    place = layout.log(stream).place
    for found in contradictions(layout, stream, partitions, reader):
        yield Damage("log", place, found.problem, stream, found.partition, found.offsets)


def _verify_log(result: Verified, stream: str, reader: LogReader) -> Verified:
    for partition in range(reader.partitions):
        for part in reader.parts(partition):
            held = part.interval
            try:
                events = sum(block.count for block in reader.blocks(partition, held))
            except NotFound:
                continue  # retention has removed it meanwhile
            except CorruptLog as error:
                told, offsets = f"{error.message}: {error.detail}", (held.lower, held.upper)
                damage = Damage("log", part.place, told, stream, partition, offsets)
                result = result.with_damage(damage)
            else:
                result = replace(
                    result,
                    log_events=result.log_events + events,
                    log_bytes=result.log_bytes + part.bytes,
                )
    return result


def _verify_master(
    result: Verified,
    layout: Layout,
    stream: str,
    partitions: int,
    mend: Mapping[str, StreamPlan] | None,
) -> Verified:
    try:
        version = newest_version(layout.master(stream), partitions)
        files = version.files if version else ()
    except CorruptMaster as error:
        return result.with_damage(Damage("master", str(error.origin), error.message, stream))
    for file in sorted(files, key=lambda file: (file.partition, file.first_offset)):
        if problem := damage_of(file) or _contradiction(file):
            offsets = (file.first_offset, file.next_offset)
            damage = Damage("master", file.path, problem, stream, file.partition, offsets)
            if mend is not None:
                damage = _mended(layout, mend.get(stream), file, damage)
            result = result.with_damage(damage)
        else:
            result = replace(
                result,
                master_records=result.master_records + file.rows,
                master_files=result.master_files + 1,
                master_bytes=result.master_bytes + file.bytes,
            )
    return result


def _contradiction(file: MasterFile) -> str | None:
    """What the Delta log says of a sound file and the file does not."""
    metadata = pq.read_metadata(file.path)
    place = metadata.schema.names.index(OFFSET)
    groups = [
        metadata.row_group(n).column(place).statistics for n in range(metadata.num_row_groups)
    ]
    found = Interval(min(g.min for g in groups), max(g.max for g in groups) + 1)
    if (metadata.num_rows, found) == (file.rows, Interval(file.first_offset, file.next_offset)):
        return None
    return (
        f"it holds {metadata.num_rows} records with offsets [{found.lower}, {found.upper}), and "
        f"the Delta log says {file.rows} with [{file.first_offset}, {file.next_offset})"
    )


def _mended(layout: Layout, plan: StreamPlan | None, file: MasterFile, damage: Damage) -> Damage:
    try:
        if plan is None:
            raise NotFound("the store does not say how the stream was deployed")
        repair(plan, layout.log(plan.name), layout.master(plan.name), file)
    except HeadraceError as error:
        return replace(damage, problem=f"{damage.problem}; not repaired: {error.message}")
    return replace(damage, repaired=True)


def _verify_database(part: str, path: Path) -> Iterator[Damage]:
    if not path.exists():
        return
    if found := damages(path):
        yield Damage(part, str(path), "; ".join(found))
