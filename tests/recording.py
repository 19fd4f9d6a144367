"""The record of a run of `make prove`: one line of JSON for each test that ended.

A test that the record says has passed is not run again, so a run that was stopped continues where
it was. tests/prove.py says where the record is, and makes the scoreboard of it.
"""

from __future__ import annotations

import gzip
import json
import os
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
FAILURE_CHARACTERS_MAX = 20_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a test ended, at which commit. `counts` is what it says it has done, such as
    {"kills": 9}; `failure` is the end of pytest's report, so that a run that is stopped early has
    still said why.
    """

    test: str
    passed: bool
    seconds: float
    ended_at: float
    counts: dict[str, int] = field(default_factory=dict)
    failure: str = ""
    commit: str = ""


class Recording:
    """Writes outcomes as they come, and leaves out what has passed before. Workers only read."""

    def __init__(self, path: Path, worker: bool, commit: str) -> None:
        self.path, self.worker, self.commit = path, worker, commit
        self.seconds: dict[str, float] = {}
        self.failures: dict[str, str] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        done = {outcome.test for outcome in outcomes(self.path) if outcome.passed}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in done])
        items[:] = [item for item in items if item.nodeid not in done]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self.worker:
            return
        test = report.nodeid
        self.seconds[test] = self.seconds.get(test, 0.0) + report.duration
        if report.outcome == "failed":
            self.failures[test] = report.longreprtext[-FAILURE_CHARACTERS_MAX:]
        if report.when == "teardown":
            counts = {name: v for name, v in report.user_properties if isinstance(v, int)}
            seconds = round(self.seconds.pop(test), 3)
            passed, failure = test not in self.failures, self.failures.get(test, "")
            self._write(Outcome(test, passed, seconds, time.time(), counts, failure, self.commit))

    def _write(self, outcome: Outcome) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")


def outcomes(path: Path) -> Iterator[Outcome]:
    """What is on the record, the newest outcome of each test."""
    lines = path.read_text().splitlines() if path.exists() else []
    newest: dict[str, dict[str, Any]] = {}
    for line in lines:
        said = json.loads(line)
        newest[said["test"]] = said
    return (Outcome(**said) for said in newest.values())


def pack_record(record: Path, file: Path) -> None:
    """Keep what has passed in one file, for another machine."""
    passed = [asdict(outcome) for outcome in outcomes(record / "outcomes.jsonl") if outcome.passed]
    lines = [{"seed": (record / "seed").read_text()}, *passed]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    file.write_bytes(gzip.compress(text.encode(), mtime=0))


def unpack_record(file: Path, record: Path, commit: str) -> None:
    """Begin a record with what has passed elsewhere, at this commit among others."""
    seed, *lines = gzip.decompress(file.read_bytes()).decode().splitlines(keepends=True)
    commits = {json.loads(line)["commit"] for line in lines}
    if not any(known.startswith(commit) for known in commits):
        raise SystemExit(f"{file.name} has no record of {commit}, only of {', '.join(commits)}")
    record.mkdir(parents=True)
    (record / "seed").write_text(json.loads(seed)["seed"])
    (record / "outcomes.jsonl").write_text("".join(lines))


def shard_of(tests: list[T], unit: Callable[[T], str]) -> list[T]:
    """Those of the shard that HEADRACE_SHARD names, such as 2/4; all without it. What is of one
    unit stays together.
    """
    number, _, shards = os.environ.get("HEADRACE_SHARD", "1/1").partition("/")
    return [
        test for test in tests if zlib.crc32(unit(test).encode()) % int(shards) == int(number) - 1
    ]
