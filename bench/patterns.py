"""Patterns over 100,000 keys: one that few events can begin, and one in which all take part.

Headrace takes the events in epochs, as typed columns, each searched and committed with its state;
and from the log until idle, decoding included. Flink SQL reads the same lines with the same clause.
Matches and a sum over them must be equal on all sides before a time counts.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Console

from bench.epochs import HIDDEN, START_US, Epochs, write_typed
from bench.flink_sides import FLINK, run_flink_job
from bench.until_idle import run_until_idle, store_of
from headrace.serving.read import Reader
from headrace.serving.sqlite import SqliteDatabase

KEYS, EPOCH_EVENTS = 100_000, 1_000_000
STREAM = """
CREATE STREAM clicks (user STRING, kind STRING, ms BIGINT, ts TIMESTAMP,
  WATERMARK ts DELAY OF INTERVAL 1 SECOND) WITH (partitions = 1);
"""
CLAUSES = {
    "few begin": """MATCH_RECOGNIZE (
  PARTITION BY `user` ORDER BY ts
  MEASURES b.ms AS ms
  ONE ROW PER MATCH
  AFTER MATCH SKIP PAST LAST ROW
  PATTERN (a c* b) WITHIN INTERVAL '10' MINUTE
  DEFINE a AS kind = 'begin', c AS kind = 'go', b AS kind = 'end')""",
    "all take part": """MATCH_RECOGNIZE (
  PARTITION BY `user` ORDER BY ts
  MEASURES up.ms AS ms
  ONE ROW PER MATCH
  AFTER MATCH SKIP PAST LAST ROW
  PATTERN (top down+ up) WITHIN INTERVAL '10' MINUTE
  DEFINE down AS ms < PREV(ms), up AS ms > PREV(ms))""",
}


def measure(folder: Path, events: int, console: Console) -> dict[str, Any]:
    """Events a second of each pattern on each side."""
    typed, lines = write_events(folder, events)
    numbers: dict[str, Any] = {"events": events, "keys": KEYS}
    for name, clause in CLAUSES.items():
        own = folder / name.replace(" ", "_")
        found = {
            "epochs": in_epochs(own / "epochs", clause, typed, events),
            "until idle": until_idle(own / "project", clause, lines),
        }
        if FLINK.exists():
            found["flink"] = on_flink(own, clause, lines)
        if len({(side["matches"], side["total"]) for side in found.values()}) > 1:
            raise SystemExit(f"the answers differ, so no time counts: {found}")
        numbers[name] = {side: events / got["seconds"] for side, got in found.items()}
        said = ", ".join(f"{side} {rate:,.0f} events/s" for side, rate in numbers[name].items())
        console.print(
            f"pattern that {name}, {events:,} events, {KEYS:,} keys, "
            f"{found['epochs']['matches']:,} matches on all sides: {said}"
        )
    if not FLINK.exists():
        console.print("Flink was left out: `make flink` installs it into .venv-flink")
    return numbers


def write_events(folder: Path, events: int) -> tuple[Path, Path]:
    """The events as typed columns and as lines; the last one comes late enough to decide all."""
    folder.mkdir(parents=True)
    lines = folder / "lines"
    lines.mkdir()
    moment = f"make_timestamp({START_US} + (i + if(i = {events - 1}, 3600000, 0)) * 1000)"
    kind = "CASE WHEN h < 100 THEN 'begin' WHEN h < 3000 THEN 'end' ELSE 'go' END"
    rows = f"""
        SELECT i, 'user-' || (hash(i) % {KEYS}) AS "user", {kind} AS kind,
               (hash(i * 11) % 5000)::BIGINT AS ms, {moment} AS ts
        FROM (SELECT i, hash(i * 7) % 10000 AS h FROM range({events}) t(i))
    """
    zoned = "timezone('UTC', ts)"
    typed = f"SELECT * EXCLUDE (i, ts), {zoned} AS ts, {HIDDEN.format(moment=zoned)} FROM ({rows})"
    write_typed(folder / "typed", typed, EPOCH_EVENTS)
    text = "strftime(ts, '%Y-%m-%dT%H:%M:%S.%gZ')"
    duckdb.sql(f"""
        COPY (SELECT * EXCLUDE (i, ts), {text} AS ts FROM ({rows}) ORDER BY i)
        TO '{lines}/000.json' (FORMAT json)
    """)
    return folder / "typed", lines


def definitions(clause: str) -> str:
    return f"""{STREAM}
CREATE STREAM matches AS SELECT * FROM clicks {clause};
CREATE VIEW v AS SELECT count(*) AS matches, sum(ms) AS total FROM matches;"""


def in_epochs(folder: Path, clause: str, events: Path, count: int) -> dict[str, Any]:
    side = Epochs(folder, definitions(clause), events, EPOCH_EVENTS)
    try:
        first = side.epoch(0)  # the first job of a session compiles its code
        rest = [side.epoch(number) for number in range(1, -(-count // EPOCH_EVENTS))]
        seconds = sum(rest) * count / (count - EPOCH_EVENTS) if rest else first
        [(matches, total)] = side.rows()
    finally:
        side.close()
    return {"seconds": seconds, "matches": matches, "total": total}


def until_idle(project: Path, clause: str, lines: Path) -> dict[str, Any]:
    seconds = run_until_idle(project, definitions(clause), lines)["work"]
    db = SqliteDatabase(store_of(project))
    ((matches, total),) = [tuple(row.values()) for row in Reader(db).view("v").rows]
    db.close()
    return {"seconds": seconds, "matches": matches, "total": total}


def on_flink(folder: Path, clause: str, lines: Path) -> dict[str, Any]:
    table = f"""CREATE TABLE clicks (
      `user` STRING, kind STRING, ms BIGINT, ts TIMESTAMP_LTZ(3),
      WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
    ) WITH ('connector' = 'filesystem', 'path' = '{lines.resolve()}', 'format' = 'json',
            'json.timestamp-format.standard' = 'ISO-8601')"""
    query = f"SELECT m.ms FROM clicks {clause} AS m"
    job = {"tables": [table], "query": query, "sink": "ms BIGINT", "rows": True}
    found = run_flink_job(job, folder)
    return {
        "seconds": found["seconds"],
        "matches": len(found["rows"]),
        "total": sum(ms for (ms,) in found["rows"]),
    }


if __name__ == "__main__":
    import sys

    with tempfile.TemporaryDirectory() as name:
        measure(Path(name) / "patterns", int(sys.argv[1]), Console())
