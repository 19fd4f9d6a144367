"""Headrace over a folder of JSON lines: `headrace import`, then `headrace run --until-idle`."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.data import lines_of
from bench.process import Child
from headrace.serving.export import view_table
from headrace.serving.sqlite import SqliteDatabase


def run_until_idle(
    project: Path, definitions: str, source: Path, *, tables: tuple[Path, ...] = ()
) -> dict[str, Any]:
    """Seconds of work in a new project, without the start of Python and Spark, nor the import."""
    project.mkdir(parents=True)
    for table in tables:
        shutil.copy(table, project)
    (project / "headrace.toml").write_text('name = "bench"\n')
    (project / "bench.sql").write_text(definitions)
    imported = _import(project, source)
    command = [sys.executable, "-m", "headrace", "run", str(project), "--until-idle", "--json"]
    child = Child(command).run(Path.cwd(), project.with_suffix(".log"))
    times = {json.loads(text).get("kind"): at for at, text in child.lines if text.startswith("{")}
    return {
        "work": times["generation"] - times["engine"],
        "whole": child.seconds,
        "memory_mb": child.memory_mb,
        "import": imported,
    }


def export(project: Path, view: str, columns: dict[str, str], out: Path) -> None:
    """Write columns of a view, under other names, with times in microseconds."""
    db = SqliteDatabase(store_of(project))
    table = view_table(db, view).select(list(columns)).rename_columns(list(columns.values()))
    db.close()
    for n, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(n, field.name, table.column(n).cast(pa.int64()))
    pq.write_table(table, out)


def store_of(project: Path) -> Path:
    return project / ".headrace" / "serving.db"


def _import(project: Path, source: Path) -> float:
    command = [sys.executable, "-m", "headrace", "import", "clicks", *map(str, lines_of(source))]
    child = Child([*command, "--project", str(project), "--json"])
    child.run(Path.cwd(), project.with_suffix(".import.log"))
    return float(json.loads("".join(text for _, text in child.lines))["seconds"])
