"""`headrace query`: the result of a query, and below it its freshness and exactness.

A result is never shown without them (client/render.py).
tests/cli/test_query.py reads a whole answer.
"""

from __future__ import annotations

from pathlib import Path

from headrace.cli.folder import open_service
from headrace.cli.report import Report, spinner
from headrace.client.render import render


def query(folder: Path, sql: str, limit: int | None) -> Report:
    """Run a SELECT."""
    with open_service(folder) as service, spinner("running the query"):
        answer = service.sql(sql, limit)
    return Report(answer, render(answer))
