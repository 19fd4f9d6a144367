"""Views over joined streams have a second opinion too, and say when an answer is provisional."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engines import Parts, compile_sql

from headrace.audit.oracle import audit_view

ON = "ON o.id = p.id AND p.ts BETWEEN o.ts - INTERVAL 1 SECOND AND o.ts + INTERVAL 30 SECONDS"
PAID = f"CREATE STREAM paid AS SELECT o.id, o.ts FROM orders o LEFT SEMI JOIN payments p {ON};"
DEFINITIONS = f"""
CREATE STREAM orders (id STRING, ts TIMESTAMP, n BIGINT,
  WATERMARK ts DELAY OF INTERVAL 10 SECONDS);
CREATE STREAM payments (id STRING, ts TIMESTAMP, n BIGINT,
  WATERMARK ts DELAY OF INTERVAL 10 SECONDS);
{PAID}
CREATE STREAM larger AS SELECT id, ts, n FROM payments WHERE n > 1;
CREATE VIEW pairs AS SELECT o.id, count(*) AS c, max_by(p.n, p.ts) AS last
  FROM orders o JOIN payments p {ON} GROUP BY o.id;
CREATE VIEW semi AS SELECT id, count(*) AS c FROM paid GROUP BY id;
CREATE VIEW lefts AS SELECT o.id, count(*) AS c, count(p.id) AS d
  FROM orders o LEFT JOIN larger p {ON} GROUP BY o.id;
CREATE VIEW fulls AS SELECT coalesce(o.id, p.id) AS id, count(o.id) AS c, count(p.id) AS d
  FROM orders o FULL JOIN payments p {ON} GROUP BY coalesce(o.id, p.id);
"""
VIEWS = ("pairs", "semi", "lefts", "fulls")


@pytest.fixture(scope="module")
def parts(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    folder: Path = tmp_path_factory.mktemp("joined")
    made = Parts(compile_sql(spark, folder, DEFINITIONS), folder / "state")
    made.catch_up()
    yield made
    made.close()


def _send(parts: Parts, stream: str, *events: tuple[str, int, int]) -> None:
    records = [
        {"id": id, "ts": f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z", "n": n}
        for id, second, n in events
    ]
    parts.intake(stream).accept([json.dumps(record).encode() for record in records])


def _epochs(parts: Parts) -> None:
    for flow in parts.flows:
        if epoch := parts.epoch(flow):
            parts.store.commit_epoch(epoch)


def _audits(parts: Parts) -> dict[str, tuple[int, str]]:
    project = parts.compiled.project
    found = [audit_view(parts.store, parts.layout, parts.plan, name, project) for name in VIEWS]
    assert all(bool(audit.compared) != bool(audit.note) for audit in found)
    return {audit.view: (audit.differences, audit.note) for audit in found}


def test_duckdb_agrees_and_a_late_partner_makes_outer_joins_provisional(parts: Parts) -> None:
    _send(parts, "orders", ("a", 0, 1), ("a", 5, 2), ("b", 6, 3))
    _send(parts, "payments", ("a", 3, 1), ("a", 4, 7), ("c", 8, 5), ("z", 90, 1))
    _epochs(parts)
    _send(parts, "orders", ("z", 100, 1))
    _epochs(parts)
    assert _audits(parts) == dict.fromkeys(VIEWS, (0, ""))
    assert parts.reader.view("lefts").rows == [
        {"id": "a", "c": 2, "d": 2},
        {"id": "b", "c": 1, "d": 0},
    ]

    _send(parts, "payments", ("b", 7, 9))
    _epochs(parts)
    held = (0, "not compared: the answer is provisional")
    assert _audits(parts) == {"pairs": (0, ""), "semi": (0, ""), "lefts": held, "fulls": held}
    told = {view: parts.reader.view(view).as_of["orders+payments"].provisional for view in VIEWS}
    assert told == {"pairs": False, "semi": False, "lefts": True, "fulls": True}

    parts.catch_up()
    assert _audits(parts) == dict.fromkeys(VIEWS, (0, ""))
    assert not parts.reader.view("lefts").as_of["orders+payments"].provisional
