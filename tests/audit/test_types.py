"""The audit of views that use every declared type: DuckDB reads the same events from the master's
files and from the log, and finds the same answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engines import Parts, compile_sql

from headrace.audit.oracle import audit_view

DEFINITIONS = """
CREATE STREAM events (
  price DECIMAL(12,3) DEFAULT 0, tiny TINYINT, single FLOAT, body BINARY,
  local TIMESTAMP_NTZ, payload VARIANT, at TIMESTAMP FORMAT 'epoch_ms' NOT NULL,
  actor STRUCT<id: STRING, org: STRUCT<name: STRING, size: SMALLINT>>, labels MAP<STRING, INT>,
  items ARRAY<STRUCT<sku: STRING, price: DECIMAL(5,2)>>,
  login STRING FROM '$.actor.login',
  WATERMARK at DELAY OF INTERVAL 10 SECONDS);

CREATE TABLE shops (sku STRING, town STRUCT<name: STRING, at: ARRAY<DOUBLE>>)
  USING json LOCATION 'shops.json';

CREATE STREAM sold AS
SELECT item.sku AS sku, item.price AS price
FROM events LATERAL VIEW explode(items) t AS item;

CREATE VIEW actors AS
SELECT actor.id AS id, payload:kind::string AS kind, labels['x'] AS x, count(*) AS n,
       sum(cast(price AS DOUBLE)) AS price, max(single) AS single, max(tiny) AS tiny,
       max(actor.org.size) AS size, max(payload:deep[1].n::int) AS deep, max(login) AS login,
       max(year(local)) AS year
FROM events GROUP BY actor.id, payload:kind::string, labels['x'];

CREATE VIEW skus AS
SELECT s.sku, t.town.name AS town, count(*) AS n, sum(cast(s.price AS DOUBLE)) AS price
FROM sold s LEFT JOIN shops t ON s.sku = t.sku GROUP BY s.sku, t.town.name;

CREATE VIEW minutes AS
SELECT window(at, '1 minute') AS w, count(*) AS n FROM events GROUP BY window(at, '1 minute');
"""
SHOPS = b'{"sku": "k", "town": {"name": "Ulm", "at": [48.4, 10.0]}}\n{"sku": "l", "town": null}\n'


def record(n: int) -> bytes:
    kind, sku = "ab"[n % 2], "kl"[n % 3 % 2]
    bad = ', "tiny": 128' if n % 7 == 6 else f', "tiny": {n % 100}'
    text = (
        f'{{"at": {1_767_225_600_000 + n * 9_000}, "price": {n}.125, "single": {n}.5{bad},'
        f' "body": "aGk=", "local": "2026-01-01T00:00:00", "labels": {{"x": {n % 2}}},'
        f' "payload": {{"kind": "{kind}", "deep": [0, {{"n": {n}}}]}},'
        f' "actor": {{"id": "u{n % 3}", "login": "al", "org": {{"size": {n}}}}},'
        f' "items": [{{"sku": "{sku}", "price": "{n}.25"}}, {{"sku": "m"}}]}}'
    )
    return text.encode()


@pytest.fixture(scope="module")
def parts(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    """Some events in a generation, some archived, some in the log alone."""
    folder: Path = tmp_path_factory.mktemp("types")
    compiled = compile_sql(spark, folder, DEFINITIONS, {"shops.json": SHOPS})
    made = Parts(compiled, folder / "state")
    for first in (0, 20, 40):
        made.intake("events").accept([record(n) for n in range(first, first + 20)])
        if first == 0:
            made.catch_up()
            continue
        if first == 20:
            made.archive("events")
        epoch = made.epoch("events")
        assert epoch is not None
        assert made.store.commit_epoch(epoch)
    yield made
    made.close()


@pytest.mark.parametrize("view", ["actors", "skus", "minutes"])
def test_duckdb_finds_the_same_answer(parts: Parts, view: str) -> None:
    found = audit_view(parts.store, parts.layout, parts.plan, view, parts.compiled.project)
    assert (found.examples, found.differences, found.note) == ((), 0, "")
    assert found.compared > 2
