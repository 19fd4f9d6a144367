"""Views over rules have a second opinion: DuckDB decides as Spark does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engines import Parts, compile_sql

from headrace.audit.oracle import audit_view

DEFINITIONS = """
CREATE STREAM calls (route STRING, type INT, seconds BIGINT, ts TIMESTAMP,
  WATERMARK ts DELAY OF INTERVAL 10 SECONDS);
CREATE TABLE routes (route STRING, kind STRING) USING csv LOCATION 'routes.csv';
CREATE RULES directions ON calls c LEFT JOIN routes r ON c.route = r.route FROM 'directions.csv';
CREATE RULES marks ON directions d ALL MATCHES
  RULE long WHEN d.seconds > 60 THEN SET seconds = 60, mark = 'long'
  RULE paid WHEN d.direction = 'O' THEN SET mark = 'paid'
  ELSE SET mark = 'none';
CREATE STREAM each AS SELECT one, seconds FROM marks LATERAL VIEW explode(rules) t AS one;
CREATE VIEW by_rule AS SELECT rule, direction, level, count(*) AS n
  FROM directions GROUP BY 1, 2, 3;
CREATE VIEW by_mark AS SELECT mark, sum(seconds) AS seconds FROM marks GROUP BY mark;
CREATE VIEW by_each AS SELECT one, count(*) AS n FROM each GROUP BY one;
"""
FILES = {
    "routes.csv": b"route,kind\na,incoming\n",
    "directions.csv": b"rule,type,r.kind,SET direction,SET level\n"
    b"outgoing,1|3,,O,1\nroaming,0,incoming,R,2.5\nelse,,,?,\n",
}


def test_duckdb_decides_as_spark_does(spark: Any, tmp_path: Path) -> None:
    parts = Parts(compile_sql(spark, tmp_path, DEFINITIONS, FILES), tmp_path / "state")
    parts.catch_up()
    calls = [(0, "a", 5), (0, "b", 70), (1, None, 61), (3, "a", None), (None, "a", 2)]
    records = [
        {"type": type, "route": route, "seconds": seconds, "ts": "2026-01-01T00:00:00Z"}
        for type, route, seconds in calls
    ]
    parts.intake("calls").accept([json.dumps(record).encode() for record in records])
    parts.catch_up()
    for view, rows in (("by_rule", 3), ("by_mark", 3), ("by_each", 3)):
        found = audit_view(parts.store, parts.layout, parts.plan, view, parts.compiled.project)
        assert (found.differences, found.note, found.compared) == (0, "", rows), view
    parts.close()
