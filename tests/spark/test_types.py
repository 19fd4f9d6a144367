"""Every declared type in Spark: the same values from the master and from the log, and a definition
that uses them in expressions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engines import Parts, compile_sql

from headrace.core.position import Position, PositionRange

DEFINITIONS = """
CREATE STREAM events (
  price DECIMAL(12,3), tiny TINYINT, small SMALLINT, single FLOAT, body BINARY,
  local TIMESTAMP_NTZ, payload VARIANT, at TIMESTAMP FORMAT 'epoch_ms',
  actor STRUCT<id: STRING, org: STRUCT<name: STRING>>, labels MAP<STRING, INT>,
  items ARRAY<STRUCT<sku: STRING, price: DECIMAL(5,2)>>,
  login STRING FROM '$.actor.login',
  WATERMARK at DELAY OF INTERVAL 10 SECONDS);

CREATE STREAM sold AS
SELECT e.actor.id AS id, item.sku AS sku, item.price AS price, e.payload:deep[0]::int AS n
FROM events e LATERAL VIEW explode(items) t AS item;

CREATE VIEW by_actor AS
SELECT actor.id AS id, payload:kind::string AS kind, labels['x'] AS x, count(*) AS n,
       sum(cast(price AS DOUBLE)) AS price, max(single) AS single, max(tiny + small) AS whole,
       max(length(body)) AS bytes, max(variant_get(payload, '$.deep[1]', 'double')) AS deep,
       max(year(local)) AS year, count(DISTINCT login) AS logins
FROM events GROUP BY actor.id, payload:kind::string, labels['x'];

CREATE VIEW skus AS SELECT sku, sum(n) AS n, max(cast(price AS DOUBLE)) AS price
FROM sold GROUP BY sku;
"""
RECORDS = [
    b'{"price": 1.125, "tiny": -128, "small": 32767, "single": 0.5, "body": "aGk=",'
    b' "local": "2026-01-01T00:00:00", "payload": {"kind": "a", "kind": "b", "deep": [1, 1.50]},'
    b' "at": 1767225600000, "actor": {"id": "ada", "org": {"name": "x"}, "login": "al"},'
    b' "labels": {"x": 1}, "items": [{"sku": "k", "price": "1.25"}, {"sku": "l"}]}',
    b'{"payload": 7, "actor": null, "items": []}',
    b'{"payload": {"deep": [1e400]}}',
    b'{"payload": null, "actor": {"id": "bob"}, "local": "0001-01-01T00:00:00", "price": "2"}',
]
VALUES = (
    "CAST(price AS STRING) AS price, tiny, small, single, hex(body) AS body, "
    "CAST(local AS STRING) AS local, CAST(payload AS STRING) AS payload, "
    "unix_micros(at) AS at, actor.org.name AS org, labels['x'] AS x, "
    "transform(items, i -> CAST(i.price AS STRING)) AS prices, login, _offset"
)
FOUND = [
    {"price": "1.125", "tiny": -128, "small": 32767, "single": 0.5, "body": "6869",
     "local": "2026-01-01 00:00:00", "payload": '{"deep":[1,1.5],"kind":"b"}',
     "at": 1767225600000000, "org": "x", "x": 1, "prices": ["1.25", None], "login": "al",
     "_offset": 0},
    {"price": None, "tiny": None, "small": None, "single": None, "body": None, "local": None,
     "payload": "7", "at": None, "org": None, "x": None, "prices": [], "login": None,
     "_offset": 1},
    {"price": "2.000", "tiny": None, "small": None, "single": None, "body": None,
     "local": "0001-01-01 00:00:00", "payload": None, "at": None, "org": None, "x": None,
     "prices": None, "login": None, "_offset": 3},
]  # fmt: skip


@pytest.fixture(scope="module")
def parts(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    folder: Path = tmp_path_factory.mktemp("types")
    made = Parts(compile_sql(spark, folder, DEFINITIONS), folder / "state")
    made.intake("events").accept(RECORDS)
    yield made
    made.close()


def test_a_value_is_the_same_from_the_log_and_from_the_master(parts: Parts) -> None:
    (feed,) = parts.feeds("events")
    batch = parts.compiled.batch

    def found() -> list[dict[str, Any]]:
        frame = feed.events(batch, PositionRange(Position((0,)), Position((len(RECORDS),))))
        frame.createOrReplaceTempView("all_types")
        rows = batch.sql(f"SELECT {VALUES} FROM all_types ORDER BY _offset").collect()
        batch.catalog.dropTempView("all_types")
        return [row.asDict() for row in rows]

    assert found() == FOUND
    parts.archive("events")
    assert found() == FOUND


ACTORS = [
    {"id": None, "kind": None, "x": None, "n": 1, "price": None, "single": None, "whole": None,
     "bytes": None, "deep": None, "year": None, "logins": 0},
    {"id": "ada", "kind": "b", "x": 1, "n": 1, "price": 1.125, "single": 0.5, "whole": 32639,
     "bytes": 2, "deep": 1.5, "year": 2026, "logins": 1},
    {"id": "bob", "kind": None, "x": None, "n": 1, "price": 2.0, "single": None, "whole": None,
     "bytes": None, "deep": None, "year": 1, "logins": 0},
]  # fmt: skip
SKUS = [{"sku": "k", "n": 1, "price": 1.25}, {"sku": "l", "n": 1, "price": None}]


def test_views_use_every_type_and_batch_finds_what_speed_has_served(parts: Parts) -> None:
    epoch = parts.epoch("events")
    assert epoch is not None
    assert parts.store.commit_epoch(epoch)
    for made in parts.catch_up():
        assert [audit for audit in made.audits if audit.differences] == []
    actors = parts.reader.view("by_actor").rows
    assert sorted(actors, key=lambda row: row["id"] or "") == ACTORS
    assert sorted(parts.reader.view("skus").rows, key=lambda row: row["sku"]) == SKUS
