"""What hinders a part of a run, by key: a sentence each, until it is over.

A problem is said once, in the log and in the report, and again only when its sentence changes.
Saying it never fails: with a full disk there is no log, and the work continues without it.
tests/core/test_problems.py checks each.
"""

from __future__ import annotations

import contextlib
import re
from typing import Any

import structlog

from headrace.core.errors import HeadraceError, sentence_of
from headrace.core.paths import without_paths
from headrace.core.report import Report

log = structlog.get_logger()
SENTENCE_MAX = 300
# A line of a trace, of Java's or Python's, that begins with the name of an error.
_CAUSE = re.compile(r"^(?:Caused by: |: )?([\w.$]+(?:Error|Exception)\b.*)$", re.MULTILINE)


class Problems(dict[str, str]):
    """The problems of one part, which has its name in the log."""

    def __init__(self, part: str, report: Report = lambda kind, fields: None) -> None:
        super().__init__()
        self.part, self.report = part, report

    def note(self, key: str, sentence: str, error: BaseException | None = None) -> None:
        if self.get(key) != sentence:
            self[key] = sentence
            say(self.part, key, sentence, self.report, error)

    def over(self, key: str) -> None:
        self.pop(key, None)


def say(
    part: str, key: str, sentence: str, report: Report, error: BaseException | None = None
) -> None:
    """Tell the log and whoever started the run; if neither can be told, nothing fails."""
    known: dict[str, Any] = {"exc_info": error} if error is not None else {}
    with contextlib.suppress(Exception):
        log.error(f"{part}.failed", what=key, problem=sentence, **known)
    with contextlib.suppress(Exception):
        report("problem", {"message": sentence})


def reason_of(error: BaseException) -> str:
    """An error as one line; of a trace of Spark's, the line that names its cause.

    >>> reason_of(ValueError("first line\\nsecond line"))
    'ValueError: first line'
    """
    known = isinstance(error, HeadraceError)
    causes = [] if known else _CAUSE.findall(without_paths(str(error)))
    return str(causes[-1] if causes else sentence_of(error)).splitlines()[0][:SENTENCE_MAX]
