"""The events before a position are the same wherever they are: in the master, in the log, or partly
in both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from engines import Parts, compile_sql
from master.test_damage import flip

from headrace.core.errors import CorruptMaster
from headrace.core.position import Position, PositionRange

DEFINITIONS = """
CREATE STREAM clicks (id STRING, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 10 SECONDS)
  WITH (id = 'id');
CREATE VIEW v AS SELECT count(*) AS n FROM clicks;
"""


@pytest.fixture(scope="module")
def parts(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    folder: Path = tmp_path_factory.mktemp("feed")
    made = Parts(compile_sql(spark, folder, DEFINITIONS), folder / "state")
    yield made
    made.close()


def _send(parts: Parts, *ids: str) -> None:
    records = [{"id": each, "ts": f"2026-01-01T00:00:{int(each):02}Z"} for each in ids]
    parts.intake("clicks").accept([json.dumps(record).encode() for record in records])


def _range(lower: int, upper: int) -> PositionRange:
    return PositionRange(Position((lower,)), Position((upper,)))


def _before(parts: Parts, upper: int, lower: int = 0) -> list[tuple[Any, ...]]:
    (feed,) = parts.feeds("clicks")
    frame = feed.events(parts.compiled.batch, _range(lower, upper))
    rows = frame.select("id", "_offset", "_late").collect()
    return sorted(tuple(row) for row in rows)


def test_events_are_read_across_the_place_where_master_and_log_meet(parts: Parts) -> None:
    _send(parts, "30", "31", "31")  # the third is a duplicate
    parts.archive("clicks")
    _send(parts, "05", "32")  # the first is late after what the master holds
    every = [("05", 3, True), ("30", 0, False), ("31", 1, False), ("32", 4, False)]
    assert _before(parts, 5) == every
    assert _before(parts, 1) == [("30", 0, False)]
    assert _before(parts, 4) == every[:3]
    assert _before(parts, 5, lower=1) == [every[0], *every[2:]]
    # What lies between the master and the range makes its events late, and is not among them.
    _send(parts, "50", "33")
    assert _before(parts, 7, lower=6) == [("33", 6, True)]
    assert _before(parts, 6, lower=6) == []
    parts.archive("clicks")
    assert _before(parts, 5) == every
    assert _before(parts, 4) == every[:3]
    assert _before(parts, 7, lower=6) == [("33", 6, True)]


def _flip_in_ids(parts: Parts) -> str:
    """Flip a bit in the column `id` of a file of the master; the file."""
    (feed,) = parts.feeds("clicks")
    file = next(file for file in feed.table.newest().files if file.status == "event")
    column = pq.ParquetFile(file.path).metadata.row_group(0).column(0)
    flip(file.path, column.data_page_offset - 3)
    return file.path


def test_a_build_refuses_a_damaged_file_and_spark_would_too(parts: Parts) -> None:
    _send(parts, "40", "41")
    parts.archive("clicks")
    (end,) = parts.feeds("clicks")[0].end().offsets
    before, path = _before(parts, end), _flip_in_ids(parts)
    with pytest.raises(CorruptMaster, match="its checksum does not match"):
        _before(parts, end)
    with pytest.raises(Exception, match=r"(?i)crc|corrupt"):
        parts.compiled.batch.read.parquet(path).collect()
    _flip_in_ids(parts)
    assert _before(parts, end) == before


TYPED = """
CREATE STREAM hooks (id STRING, payload VARIANT,
  kind STRING GENERATED ALWAYS AS (payload:kind::string));
CREATE STREAM plain (id STRING);
CREATE VIEW kinds AS SELECT kind, max(_raw:n::int) AS n FROM hooks GROUP BY kind;
CREATE VIEW ids AS SELECT id, count(*) AS n FROM plain GROUP BY id;
"""


def test_what_is_stored_has_its_type_in_master_and_log_and_raw_is_there_for_who_reads_it(
    spark: Any, tmp_path: Path
) -> None:
    parts = Parts(compile_sql(spark, tmp_path, TYPED), tmp_path / "state")
    try:
        for stream in ("hooks", "plain"):
            parts.intake(stream).accept([b'{"id": "a", "payload": {"kind": "x"}, "n": 1, "n": 2}'])
            parts.archive(stream)
            parts.intake(stream).accept([b'{"id": "b", "n": {}, "far": 1e400}'])
        (hooks,), (plain,) = parts.feeds("hooks"), parts.feeds("plain")
        events = hooks.events(parts.compiled.batch, _range(0, 2))
        rows = events.selectExpr("id", "payload:kind::string", "_raw:n::string", "_raw:far::string")
        assert sorted(map(tuple, rows.collect())) == [
            ("a", "x", "2", None),
            ("b", None, "{}", "Infinity"),
        ]
        assert "kind" not in events.columns, "views say themselves what is computed"
        assert "_raw" not in plain.events(parts.compiled.batch, _range(0, 2)).columns
    finally:
        parts.close()
