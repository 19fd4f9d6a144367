"""What a running project logs: JSON lines in `headrace.log` of its state folder.

The terminal and the API say what a user must know; this file is for whoever looks into it later.
"""

from __future__ import annotations

import structlog

from headrace.run.layout import Layout

BYTES_MAX = 16 << 20


def keep_journal(layout: Layout) -> None:
    """Write what is logged from now on to the project's file; a long one is begun anew."""
    layout.state.mkdir(parents=True, exist_ok=True)
    path = layout.state / "headrace.log"
    if path.is_file() and path.stat().st_size > BYTES_MAX:
        path.replace(path.with_suffix(".log.1"))
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.WriteLoggerFactory(file=path.open("a", encoding="utf-8")),
        cache_logger_on_first_use=False,
    )
