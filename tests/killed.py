"""A module of tests in a process of its own, which a failpoint may kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path


def run_module(module: str, *said: str, failpoint: str = "") -> None:
    """Run `python -m module`; it must end as the failpoint says."""
    root = str(Path(__file__).parents[1])
    env = {**os.environ, "HEADRACE_FAILPOINT": failpoint, "PYTHONPATH": f"{root}:{root}/tests"}
    command = [sys.executable, "-m", module, *said]
    ended = subprocess.run(command, env=env, cwd=root, capture_output=True, timeout=120)
    assert ended.returncode == (-signal.SIGKILL if failpoint else 0), ended.stderr.decode()
