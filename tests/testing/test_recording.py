"""The record of `make prove`: what has passed is known, each test is in one shard, and the
scoreboard says what was run and what failed.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path

import pytest
from recording import Outcome, Recording, outcomes, pack_record, shard_of, unpack_record
from scoreboard import write_scoreboard

COMMIT = "c0ffee"


def outcome(test: str, passed: bool, seconds: float, ended_at: float, **counts: int) -> Outcome:
    return Outcome(test, passed, seconds, ended_at, counts, commit=COMMIT)


KILLS = outcome("tests/run/test_kills.py::test_kills", True, 90.0, 1_790_000_090.0, kills=12)
MERGE = outcome("tests/laws/test_merge.py::test_sum", True, 2.0, 1_790_000_002.0, examples=50)
BROKEN = outcome("tests/log/test_kill.py::test_kill", False, 1.0, 1_790_000_003.0)


def record(folder: Path, *told: Outcome) -> Path:
    (folder / "seed").write_text("7")
    (folder / "outcomes.jsonl").write_text("".join(json.dumps(asdict(o)) + "\n" for o in told))
    return folder


def test_the_newest_outcome_of_a_test_counts(tmp_path: Path) -> None:
    mended = outcome(BROKEN.test, True, 1.5, 1_790_000_100.0)
    path = record(tmp_path, BROKEN, KILLS, mended) / "outcomes.jsonl"
    assert list(outcomes(path)) == [mended, KILLS]
    assert list(outcomes(tmp_path / "none.jsonl")) == []


def test_another_machine_continues_with_what_has_passed(tmp_path: Path) -> None:
    packed, other = tmp_path / "record.gz", tmp_path / "other"
    pack_record(record(tmp_path, BROKEN, KILLS, MERGE), packed)
    unpack_record(packed, other, COMMIT[:4])
    assert list(outcomes(other / "outcomes.jsonl")) == [KILLS, MERGE]
    assert (other / "seed").read_text() == "7"
    with pytest.raises(SystemExit, match=f"no record of decade, only of {COMMIT}"):
        unpack_record(packed, tmp_path / "third", "decade")


def test_a_failure_is_recorded_with_its_reason_when_the_test_ends(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.jsonl"
    recording = Recording(path, worker=False, commit=COMMIT)
    for when, outcome, reason in (
        ("setup", "passed", None),
        ("call", "failed", "assert 6 == 3"),
        ("teardown", "passed", None),
    ):
        report = pytest.TestReport(BROKEN.test, ("", 0, ""), {}, outcome, reason, when, (), 0.5)  # type: ignore[arg-type]
        recording.pytest_runtest_logreport(report)
    (found,) = outcomes(path)
    assert (found.passed, found.seconds, found.failure) == (False, 1.5, "assert 6 == 3")


def test_each_test_is_in_one_shard_with_the_others_of_its_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tests = [f"file{n % 40}.py::test_{n}" for n in range(200)]
    found = []
    for shard in ("1/3", "2/3", "3/3"):
        monkeypatch.setenv("HEADRACE_SHARD", shard)
        found.append(shard_of(tests, lambda test: test.partition("::")[0]))
    assert sorted(chain.from_iterable(found)) == sorted(tests)
    assert min(map(len, found)) > 20
    files = [{test.partition("::")[0] for test in shard} for shard in found]
    assert sum(map(len, files)) == len(set.union(*files)) == 40
    monkeypatch.delenv("HEADRACE_SHARD")
    assert shard_of(tests, str) == tests


def test_the_scoreboard_tells_what_was_run_and_what_failed(tmp_path: Path) -> None:
    page = tmp_path / "scoreboard.md"
    write_scoreboard(page, record(tmp_path, KILLS, MERGE, BROKEN))
    lines = page.read_text().splitlines()
    for line in (
        "| commit | `c0ffee` |",
        "| seed | `HEADRACE_SEED=7` |",
        "| from | 2026-09-21 14:13 UTC |",
        "| tests | 3: 2 passed, 1 failed |",
        "| 12 | kills of a real process at a failpoint, under ingest |",
        "| 50 | examples that Hypothesis made of laws |",
        "No failure in 12 kills bounds their rate by 25.0% (95 %).",
        "| `tests/log` | 1 | 1 | 1 |",
        "- `tests/log/test_kill.py::test_kill`",
    ):
        assert line in lines, page.read_text()


def test_the_scoreboard_says_how_many_tests_ran_at_which_commit(tmp_path: Path) -> None:
    page = tmp_path / "scoreboard.md"
    mended = replace(BROKEN, passed=True, commit="decade")
    write_scoreboard(page, record(tmp_path, KILLS, MERGE, BROKEN, mended))
    assert "| commit | `c0ffee` (2 tests), `decade` (1 tests) |" in page.read_text()


def test_the_scoreboard_of_the_docs_has_no_failure() -> None:
    page = Path(__file__).parents[2] / "docs" / "scoreboard.md"
    assert re.search(r"^\| tests \| [\d,]+: [\d,]+ passed, 0 failed \|$", page.read_text(), re.M)
