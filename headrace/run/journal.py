"""What a running project logs, in `headrace.log` of its state folder: JSON lines, or lines for a
person (`log.format`), from a level on (`log.level`).

Each line says its project; what happens for a request has its `request_id`, the one in the answer's
X-Request-Id, and what happens in an epoch has its `stream` and `epoch`, whichever thread says it.
The terminal and the API say what a user must know; this file is for whoever looks into it later.
tests/run/test_journal.py reads the lines.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import structlog
from structlog.typing import Processor

from headrace.define.settings import LogSettings
from headrace.run.layout import Layout

BYTES_MAX = 16 << 20


def keep_journal(layout: Layout, name: str, log: LogSettings) -> None:
    """Write what is logged from now on to the project's file; a long one is begun anew."""
    layout.state.mkdir(parents=True, exist_ok=True)
    path = layout.state / "headrace.log"
    if path.is_file() and path.stat().st_size > BYTES_MAX:
        path.replace(path.with_suffix(".log.1"))
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            _of(name),
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *_written_as(log.format),
        ],
        # A level that is left out costs a call that does nothing.
        wrapper_class=structlog.make_filtering_bound_logger(log.level),
        logger_factory=structlog.WriteLoggerFactory(
            file=path.open("a", buffering=1, encoding="utf-8")
        ),
        cache_logger_on_first_use=False,
    )


def keep_no_journal() -> None:
    """Say on standard error only what is wrong: a command's answer is alone on standard output."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger("warning"),
        logger_factory=lambda *args: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )


def _of(project: str) -> Processor:
    def add_project(logger: Any, method: str, event: Any) -> Mapping[str, Any]:
        return {"project": project, **event}

    return add_project


def _written_as(format: str) -> list[Processor]:
    if format == "console":
        return [structlog.dev.ConsoleRenderer(colors=False)]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
