"""`make prove`: every test in its exhaustive form, in shards, on the record.

The record of a commit is the folder .prove/COMMIT: the seed that all of its runs draw from, and
the outcomes (tests/recording.py). A run that was stopped continues where it was. At the end
docs/scoreboard.md is written from the record; it says how many tests have run at which commit.
What has passed is kept beside the page, so that another machine can continue. `AFTER=COMMIT`
begins with the record of an earlier commit, on this machine or beside the page, so that only what
failed or was not run there is run, for a change that cannot touch the rest.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from recording import pack_record, unpack_record  # noqa: E402
from scoreboard import write_scoreboard  # noqa: E402

KEPT = ROOT / "docs" / "scoreboard.jsonl.gz"


def main() -> int:
    if changes():
        print("a record is of a commit: commit these first\n" + changes(), file=sys.stderr)
        return 2
    commit = git("rev-parse", "--short=12", "HEAD")
    record = ROOT / ".prove" / commit
    after = os.environ.get("HEADRACE_AFTER")
    if after and not record.exists():
        if (before := record.parent / after).exists():
            shutil.copytree(before, record)
        else:
            unpack_record(KEPT, record, after)
    record.mkdir(parents=True, exist_ok=True)
    seed = record / "seed"
    if not seed.exists():
        seed.write_text(os.environ.get("HEADRACE_SEED") or str(random.randrange(2**32)))
    drawn = seed.read_text()
    print(f"commit {commit}, HEADRACE_SEED={drawn}, shard {os.environ['HEADRACE_SHARD']}")
    said = {"HEADRACE_PROVE": "1", "HEADRACE_SEED": drawn, "HEADRACE_COMMIT": commit}
    said["HEADRACE_RECORD"] = str(record / "outcomes.jsonl")
    command = [sys.executable, "-m", "pytest", "-q", *sys.argv[1:]]
    code = subprocess.run(command, cwd=ROOT, env=os.environ | said).returncode
    write_scoreboard(ROOT / "docs" / "scoreboard.md", record)
    pack_record(record, KEPT)
    return 0 if code == 5 else code  # nothing was left to run


def changes() -> str:
    """What differs from the commit, beside the scoreboard, which a shard may have written."""
    lines = git("status", "--porcelain", "--untracked-files=no").splitlines()
    return "\n".join(line for line in lines if "docs/scoreboard." not in line)


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.rstrip()


if __name__ == "__main__":
    sys.exit(main())
