"""The record of `make prove`: what has passed is known, each test is in one shard, and the
scoreboard says what was run and what failed.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from itertools import chain
from pathlib import Path

import pytest
from recording import Outcome, outcomes, shard_of
from scoreboard import write_scoreboard

KILLS = Outcome("tests/run/test_kills.py::test_kills", True, 90.0, 1_790_000_090.0, {"kills": 12})
MERGE = Outcome("tests/laws/test_merge.py::test_sum", True, 2.0, 1_790_000_002.0, {"examples": 50})
BROKEN = Outcome("tests/log/test_kill.py::test_kill", False, 1.0, 1_790_000_003.0)


def record(folder: Path, *told: Outcome) -> Path:
    (folder / "seed").write_text("7")
    (folder / "outcomes.jsonl").write_text("".join(json.dumps(asdict(o)) + "\n" for o in told))
    return folder


def test_the_newest_outcome_of_a_test_counts(tmp_path: Path) -> None:
    mended = Outcome(BROKEN.test, True, 1.5, 1_790_000_100.0)
    path = record(tmp_path, BROKEN, KILLS, mended) / "outcomes.jsonl"
    assert list(outcomes(path)) == [mended, KILLS]
    assert list(outcomes(tmp_path / "none.jsonl")) == []


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
    write_scoreboard(page, record(tmp_path, KILLS, MERGE, BROKEN), "c0ffee")
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


def test_the_scoreboard_of_the_docs_has_no_failure() -> None:
    page = Path(__file__).parents[2] / "docs" / "scoreboard.md"
    assert re.search(r"^\| tests \| [\d,]+: [\d,]+ passed, 0 failed \|$", page.read_text(), re.M)
