"""Law 7, history does not change: what a version of the master holds, every later one holds too,
byte for byte.

Steps append whole ranges once; compaction moves rows to other files and changes none of them.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from engines import Compiled, Parts, compile_sql

from headrace.core.event import OFFSET, PARTITION
from headrace.core.position import Position, PositionRange
from headrace.master.compact import compact
from headrace.master.table import MasterTable

DEFINITIONS = """
CREATE STREAM clicks (user STRING, ms BIGINT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 10
  SECONDS);
CREATE VIEW users AS SELECT user, count(*) AS n FROM clicks GROUP BY user;
"""
Rows = dict[tuple[int, int], tuple[Any, ...]]


@pytest.fixture(scope="module")
def compiled(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compile_sql(spark, tmp_path_factory.mktemp("history"), DEFINITIONS, partitions=2)


def rows_of(table: MasterTable) -> Rows:
    """Every row of the newest version by its place in the log, which it has alone."""
    found: Rows = {}
    for file in table.newest().files:
        for row in pq.read_table(file.path, partitioning=None).to_pylist():
            place = (row[PARTITION], row[OFFSET])
            assert place not in found, f"the event at {place} is there twice"
            found[place] = (file.status, *row.items())
    return found


def _send(parts: Parts, rng: random.Random) -> None:
    for partition in (0, 1):
        records = [
            json.dumps({"user": rng.choice("ab"), "ms": rng.randrange(9)}).encode()
            for _ in range(4)
        ]
        parts.topics["clicks"].append(partition, [*records, b"not json"], bytes(5)).result()


def test_each_version_holds_all_rows_of_those_before_it(compiled: Compiled, tmp_path: Path) -> None:
    rng, parts = random.Random(1), Parts(compiled, tmp_path)
    table, before = parts.archives["clicks"].table, Rows()
    for step in range(5):
        _send(parts, rng)
        parts.archives["clicks"].step(rng.choice([2, 7, 100]))
        now = rows_of(table)
        assert before.items() <= now.items()
        assert len(now) == sum(table.newest().position.offsets)
        before = now
        if step == 2:
            files = table.newest().files
            assert compact(compiled.spark, table, files_max=2)
            assert len(table.newest().files) < len(files)
            assert rows_of(table) == before
    parts.archive("clicks")
    assert len(rows_of(table)) == sum(parts.topics["clicks"].end().offsets) == 50
    parts.close()


def test_every_offset_is_there_without_gaps(compiled: Compiled, tmp_path: Path) -> None:
    parts = Parts(compiled, tmp_path)
    _send(parts, random.Random(2))
    parts.archive("clicks")
    places = sorted(rows_of(parts.archives["clicks"].table))
    assert places == [(partition, offset) for partition in (0, 1) for offset in range(5)]
    parts.close()


def test_a_range_is_never_appended_twice(compiled: Compiled, tmp_path: Path) -> None:
    parts = Parts(compiled, tmp_path)
    _send(parts, random.Random(3))
    parts.archive("clicks")
    table = parts.archives["clicks"].table
    before, end = rows_of(table), table.newest().position
    with pytest.raises(ValueError, match="expected a range from 5,5, got 0,0"):
        table.append(PositionRange(Position((0, 0)), end), table.newest().files, (None, None))
    assert rows_of(table) == before
    parts.close()
