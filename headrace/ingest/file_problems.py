"""The problems of a stream's files: at most two for its source, however many files.

A file that fails is tried again, and its problem is over when it was read. A record that was
skipped stays a warning while the file is there: it will not be read again.
tests/ingest/test_files.py checks both.
"""

from __future__ import annotations

from collections.abc import Container

from headrace.core.problems import Level, ProblemKey, Problems


class FileProblems:
    """The newest sentence of each file, and of the newest file the sentence that is shown."""

    def __init__(self, stream: str, problems: Problems) -> None:
        self._stream, self._problems = stream, problems
        self._failing: dict[str, str] = {}
        self._passed_over: dict[str, str] = {}

    def failed(self, file: str, why: str) -> None:
        self._failing[file] = why
        self._note("files", self._failing, "bad")

    def well(self, file: str) -> None:
        if self._failing.pop(file, None):
            self._note("files", self._failing, "bad")

    def passed_over(self, file: str, why: str) -> None:
        self._passed_over[file] = why
        self._note("records", self._passed_over, "warn")

    def keep(self, files: Container[str]) -> None:
        """Forget the files that are gone."""
        for file in [file for file in self._failing if file not in files]:
            self.well(file)
        for file in [file for file in self._passed_over if file not in files]:
            del self._passed_over[file]
            self._note("records", self._passed_over, "warn")

    def _note(self, what: str, wrong: dict[str, str], level: Level) -> None:
        key = ProblemKey("source", self._stream, what)
        if not wrong:
            self._problems.over(key)
            return
        file, why = next(reversed(wrong.items()))
        more = f" (and {len(wrong) - 1:,} other files)" if len(wrong) > 1 else ""
        self._problems.note(key, f"stream '{self._stream}', file {file}: {why}{more}", level=level)
