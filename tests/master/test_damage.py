"""One flipped bit anywhere in a file of the master is told by whoever reads it, and never answered
from.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from headrace.audit.events import records_name, register_records
from headrace.core.errors import CorruptMaster
from headrace.core.position import Position, PositionRange
from headrace.define.layout import Layout
from headrace.log.opening import open_reader
from headrace.master.balance import read_dead_letters
from headrace.master.decoding import decoder_of
from headrace.master.event_range import RangeReader
from headrace.master.version import MasterFile

from .bench import CLICKS, Bench, click

FLIPS = 40


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Where the state of a project would be that has the stream."""
    return tmp_path


@pytest.fixture
def filled(state: Path) -> Bench:
    """Two files of events and two of dead letters."""
    bench = Bench(state, log=state / "log/clicks", master=state / "master/clicks")
    for step in range(2):
        bench.send(0, *(click(f"u{n}", n, ms=n * 7 + step) for n in range(500)), b"no json")
        bench.archive.step(1000)
    bench.topic.close()
    return bench


def flip(path: str, at: int) -> None:
    """Flip one bit."""
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ (1 << (at % 8))]))


def file_of(bench: Bench, status: str = "event") -> MasterFile:
    return next(file for file in bench.table.newest().files if file.status == status)


WHOLE = PositionRange(Position((0, 0)), Position((1002, 0)))


def by_range(bench: Bench, state: Path) -> object:
    return (
        RangeReader(CLICKS, Layout(state).log("clicks"), bench.table.path).read(WHOLE).to_pylist()
    )


def by_duckdb(bench: Bench, state: Path) -> object:
    with duckdb.connect(":memory:") as connection:
        register_records(connection, CLICKS, WHOLE.upper, Layout(state))
        return connection.execute(f"SELECT sum(ms) FROM {records_name('clicks')}").fetchall()


def by_compaction(bench: Bench, state: Path) -> object:
    return bench.compact(files_max=2)


def by_dead_letters(bench: Bench, state: Path) -> object:
    reader = open_reader(Layout(state).log("clicks"))
    return read_dead_letters(bench.table, decoder_of(CLICKS), reader, 10)


READERS = [by_range, by_duckdb, by_compaction, by_dead_letters]


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_refuses_a_flipped_bit_wherever_it_is(
    filled: Bench, state: Path, reader: Callable[[Bench, Path], object]
) -> None:
    file = file_of(filled, "dead_letter" if reader is by_dead_letters else "event")
    for at in range(5, file.bytes, file.bytes // FLIPS):
        flip(file.path, at)
        with pytest.raises(CorruptMaster, match="master dataset of 'clicks' is damaged: its"):
            reader(filled, state)
        flip(file.path, at)
    reader(filled, state)


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_refuses_a_missing_file(
    filled: Bench, state: Path, reader: Callable[[Bench, Path], object]
) -> None:
    file = file_of(filled, "dead_letter" if reader is by_dead_letters else "event")
    Path(file.path).unlink()
    with pytest.raises(CorruptMaster) as caught:
        reader(filled, state)
    assert str(caught.value) == (
        "CorruptMaster: a file of the master dataset of 'clicks' is damaged: it is missing\n"
        f"  detail: it contains {file.rows} records of partition 0 with offsets "
        f"[{file.first_offset}, {file.next_offset}) and the status '{file.status}'.\n"
        "  hint: run `headrace verify --repair`, which rewrites it if the log still has its events"
        "; otherwise restore a backup.\n"
        f"  at {file.path}"
    )


def test_pages_are_verified_by_one_who_has_hashed_the_file_before(
    filled: Bench, state: Path
) -> None:
    ranges = RangeReader(CLICKS, Layout(state).log("clicks"), filled.table.path)
    assert len(ranges.read(WHOLE)) == 1000
    file = file_of(filled)
    group = pq.ParquetFile(file.path).metadata.row_group(0)
    columns = {c.path_in_schema: c for c in map(group.column, range(group.num_columns))}
    flip(file.path, columns["ms"].data_page_offset - 10)
    with pytest.raises(CorruptMaster):
        ranges.read(WHOLE)


@pytest.mark.parametrize(
    ("written", "instead", "told"),
    [
        ('"offset-0","version":1002', '"offset-0","version":1000', "checksum of position 1000,0"),
        ('"high-0","version":1', '"high-0","version":9', "checksum of position 1002,0"),
        ('"appId":"checksum"', '"appId":"checksun"', "checksum of position 1002,0"),
        ('Records\\": 500', 'Records\\": 400', "at offset 1002, but its files contain 902 records"),
        ('offset\\": 501', 'offset\\": 757', "with 500 records at offsets [757, 1001)"),
        (
            '"_status":"event"',
            '"_status":"evenu"',
            "listed in _status=evenu/_day=2026-01-01/_lane=0",
        ),
        ('"_lane":"0"', '"_lane":"p"', "its path is _status=event/_day=2026-01-01/_lane=0"),
        ("minValues", "minValuer", "is not complete"),
        ('"txn":{', '"txn";{', "Json error"),
    ],
)
def test_a_damaged_commit_of_the_delta_log_is_refused(
    filled: Bench, state: Path, written: str, instead: str, told: str
) -> None:
    newest = max((filled.table.path / "_delta_log").glob("*.json"))
    text = newest.read_text()
    assert written in text
    newest.write_text(text.replace(written, instead, 1))
    with pytest.raises(CorruptMaster) as caught:
        RangeReader(CLICKS, Layout(state).log("clicks"), filled.table.path).read(WHOLE)
    start = "the Delta log of the master dataset of 'clicks' is inconsistent: "
    assert caught.value.message.startswith(start)
    assert told in caught.value.message


def test_a_file_is_named_by_its_bytes_also_after_a_compaction(filled: Bench) -> None:
    import hashlib

    assert filled.compact(files_max=2)
    for file in filled.table.newest().files:
        digest = hashlib.sha256(Path(file.path).read_bytes()).hexdigest()
        assert Path(file.path).name == f"{digest}.parquet"
