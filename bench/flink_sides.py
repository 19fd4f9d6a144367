"""Flink SQL over the same lines, if `make flink` has installed it into .venv-flink."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.data import ads_of
from bench.process import Child
from bench.workloads import View

FLINK = Path(".venv-flink/bin/python")
_TYPES = {"n": "BIGINT", "w": "BIGINT", "ms": "BIGINT", "users": "BIGINT"}


def run_flink_job(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What bench/flink.py says of a job."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "job.json"
    file.write_text(json.dumps(job))
    script = str(Path(__file__).parent / "flink.py")
    child = Child([str(FLINK), script, str(file)]).run(Path.cwd(), folder / "flink.log")
    said: dict[str, Any] = json.loads(child.lines[-1][1])
    return said | {"memory_mb": child.memory_mb}


def run_flink(views: tuple[View, ...], source: Path, folder: Path) -> dict[str, Any] | None:
    """All views one after another, as one job each; none without Flink."""
    if not FLINK.exists():
        return None
    seconds, memory_mb = 0.0, 0.0
    for view in views:
        sink = ", ".join(
            f"{name} {_TYPES.get(name, 'STRING')}" for name in map(_quoted, view.columns)
        )
        said = run_flink_job(
            {"tables": _tables(source), "query": view.flink, "sink": sink, "rows": True}, folder
        )
        columns = zip(*said["rows"], strict=True)
        pq.write_table(
            pa.table(dict(zip(view.columns, map(list, columns), strict=True))), folder / view.name
        )
        seconds, memory_mb = seconds + said["seconds"], max(memory_mb, said["memory_mb"])
    return {"work": seconds, "memory_mb": memory_mb}


def _quoted(name: str) -> str:
    return f"`{name}`" if name == "user" else name


def _tables(source: Path) -> list[str]:
    # Files are read in any order, and an event that is late for Flink is lost.
    lines = f"'connector' = 'filesystem', 'path' = '{source.resolve()}', 'format' = 'json'"
    ads = f"""'connector' = 'filesystem', 'path' = '{ads_of(source).resolve()}',
      'format' = 'csv', 'csv.ignore-parse-errors' = 'true'"""
    return [
        f"""CREATE TABLE clicks (
          `user` STRING, ad STRING, kind STRING, ts TIMESTAMP_LTZ(3), ms BIGINT,
          WATERMARK FOR ts AS ts - INTERVAL '1' DAY
        ) WITH ({lines}, 'source.path.regex-pattern' = '.*json',
                'json.timestamp-format.standard' = 'ISO-8601')""",
        f"CREATE TABLE ads (ad STRING, campaign STRING) WITH ({ads})",
    ]
