"""The engine of a task reads the given relations, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headrace.core.errors import EngineFailed
from headrace.kernel.engine import run_kernel


def test_a_query_reads_its_relations() -> None:
    numbers = pa.table({"n": [1, 2, 3]})
    total = run_kernel("SELECT sum(n)::BIGINT AS n FROM numbers", {"numbers": numbers})
    assert total.to_pylist() == [{"n": 6}]
    with pytest.raises(EngineFailed, match="the vectorised kernel failed"):
        run_kernel("SELECT * FROM numbers", {})  # those of the query before are gone


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('{path}')",
        "COPY (SELECT 1) TO '{path}'",
        "ATTACH '{path}'",
        "INSTALL httpfs",
        "SET threads = 8",
    ],
)
def test_nothing_outside_is_reached(sql: str, tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("secret")
    with pytest.raises(EngineFailed):
        run_kernel(sql.format(path=path), {})
    assert path.read_text() == "secret"
