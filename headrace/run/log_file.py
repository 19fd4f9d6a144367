"""The log file of a running project, `headrace.log` in its state folder: JSON lines or console
format (`log.format`), from a level on (`log.level`).

Each line has the project's name. Lines of a request have its `request_id`, which is also the
response's X-Request-Id; lines of an epoch have its `stream` and `epoch`, in every thread. What
libraries log is written here too; without a handler Python would print it to the terminal.
Writing a line never fails: on a full disk lines are lost and the caller continues.
tests/run/test_log_file.py reads the lines.
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


class _LibraryHandler(logging.Handler):
    """Forwards what libraries log to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        logger = structlog.get_logger()
        write = getattr(logger, record.levelname.lower(), logger.error)
        with contextlib.suppress(ValueError):  # the file may be closed at the end of a process
            write(record.getMessage(), library=record.name, exc_info=record.exc_info)


_LIBRARY_HANDLER = _LibraryHandler(logging.WARNING)


def log_to_file(layout: Layout, name: str, log: LogSettings) -> None:
    """Log to the project's file from now on; a file above BYTES_MAX is rotated first."""
    layout.make_state()
    path = layout.state / "headrace.log"
    if path.is_file() and path.stat().st_size > BYTES_MAX:
        path.replace(path.with_suffix(".log.1"))
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            _add_project(name),
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *_renderers(log.format),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(log.level),
        logger_factory=structlog.WriteLoggerFactory(file=_unfailing(_LineFile(path))),
        cache_logger_on_first_use=False,
    )
    logging.getLogger().addHandler(_LIBRARY_HANDLER)  # adding it twice has no effect


def log_to_stderr() -> None:
    """Log warnings and errors to standard error: standard output is for a command's result."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger("warning"),
        logger_factory=lambda *args: structlog.WriteLogger(_unfailing(_Stderr())),
        cache_logger_on_first_use=False,
    )


class _LineFile:
    """A file that lines are appended to. After a partial write on a full disk, the next line starts
    with a newline.
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


def _unfailing(file: _LineFile | _Stderr) -> TextIO:
    return cast(TextIO, file)  # structlog calls only write and flush


def _add_project(project: str) -> Processor:
    def add_project(logger: Any, method: str, event: Any) -> Mapping[str, Any]:
        return {"project": project, **event}

    return add_project


def _renderers(format: str) -> list[Processor]:
    if format == "console":
        return [structlog.dev.ConsoleRenderer(colors=False)]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
