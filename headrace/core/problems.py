"""The current problems of the parts of a run: one sentence for each subject, until the problem is
over.

The key of a problem is its subject and the part of the subject that fails. It is reported once, in
the log and in the report, and again only when its sentence changes; `since` is when it began.
Reporting never fails: with a full disk there is no log, and the work continues without it. Each
part that works by itself has `Problems`, which end with the part. tests/core/test_problems.py
checks each.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

import msgspec
import structlog
from msgspec.structs import force_setattr

from headrace.core.errors import HeadraceError, sentence_of
from headrace.core.paths import without_paths
from headrace.core.report import Report
from headrace.core.time import Clock, iso, now_us

log = structlog.get_logger()
SENTENCE_MAX = 300
# A line of a trace, of Java's or Python's, that begins with the name of an error.
_CAUSE = re.compile(r"^(?:Caused by: |: )?([\w.$]+(?:Error|Exception)\b.*)$", re.MULTILINE)

Level = Literal["warn", "bad"]  # slow, behind or partly lost; failing


class ProblemKey(NamedTuple):
    """The subject of a problem, and what of it fails: `ProblemKey("flow", "clicks", "archive")`."""

    kind: str  # of the subject: source, flow, table, rule, action, sink or part of the run
    name: str  # of the subject
    what: str


class Problem(msgspec.Struct, frozen=True):
    """What is wrong with one subject: a place of the topology, or a part of the run."""

    kind: str
    name: str
    what: str
    message: str
    level: Level = "bad"
    since: str | None = None  # None if it is not known when it began
    about: str = ""  # computed: the id of the place, or the name of the part of the run

    def __post_init__(self) -> None:
        place = self.name if self.kind == "part" else f"{self.kind}:{self.name}"
        force_setattr(self, "about", place)

    @property
    def key(self) -> ProblemKey:
        return ProblemKey(self.kind, self.name, self.what)


class Problems:
    """The problems of one part, which has its name in the log."""

    def __init__(
        self, part: str, report: Report = lambda kind, fields: None, clock: Clock = now_us
    ) -> None:
        self.part, self.report, self.clock = part, report, clock
        self._known: dict[ProblemKey, Problem] = {}

    def __iter__(self) -> Iterator[Problem]:
        return iter(list(self._known.values()))

    def get(self, key: ProblemKey) -> Problem | None:
        return self._known.get(key)

    def note(
        self,
        key: ProblemKey,
        message: str,
        error: BaseException | None = None,
        level: Level = "bad",
    ) -> None:
        before = self._known.get(key)
        if before and (before.message, before.level) == (message, level):
            return
        since = before.since if before else iso(self.clock())
        self._known[key] = Problem(*key, message, level, since)
        self._say(self._known[key], error)

    def over(self, key: ProblemKey) -> None:
        self._known.pop(key, None)

    def forget(self, kind: str, name: str) -> None:
        """Forget the problems of a subject that no longer exists."""
        for key in [key for key in list(self._known) if key[:2] == (kind, name)]:
            self.over(key)

    def _say(self, problem: Problem, error: BaseException | None) -> None:
        """Write to the log, and report a failure; if neither can be written, nothing fails."""
        failing = problem.level == "bad"
        known: dict[str, Any] = {"exc_info": error} if error is not None else {}
        with contextlib.suppress(Exception):
            tell = log.error if failing else log.warning
            tell(f"{self.part}.failed", **problem.key._asdict(), problem=problem.message, **known)
        with contextlib.suppress(Exception):
            if failing:
                self.report("problem", {"message": problem.message})


def deduplicated(*problems: Iterable[Problem]) -> list[Problem]:
    """All of these; of those with the same key, the last."""
    return list({one.key: one for some in problems for one in some}.values())


def reason_of(error: BaseException) -> str:
    """An error as one line; of a trace of Spark's, the line that names its cause.

    >>> reason_of(ValueError("first line\\nsecond line"))
    'ValueError: first line'
    """
    known = isinstance(error, HeadraceError)
    causes = [] if known else _CAUSE.findall(without_paths(str(error)))
    return str(causes[-1] if causes else sentence_of(error)).splitlines()[0][:SENTENCE_MAX]
