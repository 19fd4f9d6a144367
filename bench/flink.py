"""One query of Flink SQL over a file of JSON lines, run by a Python that has apache-flink:
`python flink.py JOB.json`, with {"tables": [DDL, …], "query": SQL, "sink": columns, "rows": bool}.

Prints one JSON line with `seconds`, measured with a sink that drops what it gets, and, if rows are
asked for, `rows`, the final rows of a second run. It speaks no Headrace, so that it needs none of
its packages.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any


def main(job: dict[str, Any]) -> None:
    from pyflink.table import EnvironmentSettings, TableEnvironment

    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = {
        "parallelism.default": "2",
        "pipeline.object-reuse": "true",
        "table.local-time-zone": "UTC",
        # Changes of a key are gathered, as they are in the micro-batches of the others.
        "table.exec.mini-batch.enabled": "true",
        "table.exec.mini-batch.allow-latency": "5 s",
        "table.exec.mini-batch.size": "200000",
        "table.optimizer.agg-phase-strategy": "TWO_PHASE",
    }
    for name, value in settings.items():
        env.get_config().set(name, value)
    for ddl in job["tables"]:
        env.execute_sql(ddl)
    env.execute_sql(f"CREATE TABLE dropped ({job['sink']}) WITH ('connector' = 'blackhole')")
    began = time.monotonic()
    env.execute_sql(f"INSERT INTO dropped {job['query']}").wait()
    said: dict[str, Any] = {"seconds": time.monotonic() - began}
    if job["rows"]:
        said["rows"] = final_rows(env.execute_sql(job["query"]))
    print(json.dumps(said))


def final_rows(result: Any) -> list[list[Any]]:
    """The rows that are left of a stream of changes."""
    from pyflink.common.types import RowKind

    left: dict[tuple[Any, ...], int] = {}
    with result.collect() as rows:
        for row in rows:
            values = tuple(row)
            added = row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
            left[values] = left.get(values, 0) + (1 if added else -1)
    return [list(values) for values, times in left.items() for _ in range(times)]


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
