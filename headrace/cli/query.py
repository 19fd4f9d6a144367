"""`headrace query`: an answer, and below it what the answer speaks for.

A person never sees a number without how fresh and how exact it is (client/shown.py).
tests/cli/test_query.py reads a whole answer.
"""

from __future__ import annotations

from pathlib import Path

from headrace.cli.folder import asked
from headrace.cli.report import Report, waiting
from headrace.client.shown import shown


def query(folder: Path, sql: str, limit: int | None) -> Report:
    """Ask the project a SELECT."""
    with asked(folder) as service, waiting("asking"):
        answer = service.sql(sql, limit)
    return Report(answer, shown(answer))
