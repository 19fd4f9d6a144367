"""What a running project logs, in `headrace.log` of its state folder: JSON lines, or lines for a
person (`log.format`), from a level on (`log.level`).

Each line says its project; what happens for a request has its `request_id`, the one in the answer's
X-Request-Id, and what happens in an epoch has its `stream` and `epoch`, whichever thread says it.
The terminal and the API say what a user must know; this file is for whoever looks into it later.
What libraries log comes here too: without a handler, Python would print it between our own lines.
Writing a line never fails: on a full disk lines are lost, and whoever logs goes on with its work.
tests/run/test_journal.py reads the lines.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO, cast

import structlog
from structlog.typing import Processor

from headrace.define.layout import Layout
from headrace.define.settings import LogSettings

BYTES_MAX = 16 << 20


class _Libraries(logging.Handler):
    """Writes what libraries log."""

    def emit(self, record: logging.LogRecord) -> None:
        logger = structlog.get_logger()
        say = getattr(logger, record.levelname.lower(), logger.error)
        with contextlib.suppress(ValueError):  # the file may be closed at the end of a process
            say(record.getMessage(), library=record.name, exc_info=record.exc_info)


_LIBRARIES = _Libraries(logging.WARNING)


def keep_journal(layout: Layout, name: str, log: LogSettings) -> None:
    """Write what is logged from now on to the project's file; a long one is begun anew."""
    layout.make_state()
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
        logger_factory=structlog.WriteLoggerFactory(file=_unfailing(_Lines(path))),
        cache_logger_on_first_use=False,
    )
    logging.getLogger().addHandler(_LIBRARIES)  # which is there once, however often it is added


def keep_no_journal() -> None:
    """Say on standard error only what is wrong: a command's answer is alone on standard output."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger("warning"),
        logger_factory=lambda *args: structlog.WriteLogger(_unfailing(_Stderr())),
        cache_logger_on_first_use=False,
    )


class _Lines:
    """A file that lines are appended to. One that was cut by a full disk is ended first, so that
    the next one is whole.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)
        self._cut = False

    def write(self, text: str) -> None:
        data = (b"\n" if self._cut else b"") + text.encode("utf-8", "replace")
        with contextlib.suppress(OSError):
            written = self._file.write(data) or 0
            self._cut = written < len(data) and (written > 0 or self._cut)

    def flush(self) -> None:
        """Nothing is buffered."""

    def close(self) -> None:
        self._file.close()


class _Stderr:
    """Standard error, which may be a file on a full disk or a closed pipe."""

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()


def _unfailing(file: _Lines | _Stderr) -> TextIO:
    return cast(TextIO, file)  # structlog asks for no more than write and flush


def _of(project: str) -> Processor:
    def add_project(logger: Any, method: str, event: Any) -> Mapping[str, Any]:
        return {"project": project, **event}

    return add_project


def _written_as(format: str) -> list[Processor]:
    if format == "console":
        return [structlog.dev.ConsoleRenderer(colors=False)]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
