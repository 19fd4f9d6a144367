"""Flink SQL's MATCH_RECOGNIZE over a file of JSON lines, run by a Python that has apache-flink:
`python flink.py EVENTS PATTERN.sql`. Prints one JSON line: seconds, matches, and a sum over them.

It speaks no Headrace, so that it needs none of its packages.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def main(events: str, clause: str) -> None:
    from pyflink.table import EnvironmentSettings, TableEnvironment

    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "2")
    env.get_config().set("pipeline.object-reuse", "true")
    env.execute_sql(f"""
        CREATE TABLE clicks (
          `user` STRING, kind STRING, ms BIGINT, ts TIMESTAMP_LTZ(3),
          WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
        ) WITH ('connector' = 'filesystem', 'path' = '{events}', 'format' = 'json',
                'json.timestamp-format.standard' = 'ISO-8601')
    """)
    began = time.monotonic()
    matches = total = 0
    with env.execute_sql(f"SELECT m.ms FROM clicks {clause} AS m").collect() as rows:
        for row in rows:
            matches, total = matches + 1, total + row[0]
    seconds = time.monotonic() - began
    print(json.dumps({"seconds": seconds, "matches": matches, "total": total}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]).read_text())
