"""`headrace export` of a stopped project, and what it says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

from tests.serving.bench import CLICKS, DEFINITIONS, Bench


def test_rows_are_written_and_counted(call: Callable[..., Result], tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "headrace.toml").write_text('name = "project"\n')
    (project / "views.sql").write_text(DEFINITIONS)
    bench = Bench(project / ".headrace" / "serving.db")
    bench.build()
    bench.send(*CLICKS)
    bench.close()
    out = tmp_path / "total.csv"
    done = call("export", "total", str(out), "--project", str(project))
    assert done.stdout.split() == ["wrote", "1", "row", "of", "total", "to", str(out)]
    assert out.read_text().splitlines()[0] == '"n","slowest","last"'
    again = call("export", "total", str(out), "--project", str(project), "--json")
    assert json.loads(again.stdout)["message"] == f"'{out}' already exists"
