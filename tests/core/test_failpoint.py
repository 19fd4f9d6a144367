"""A failpoint ends the process at its n-th pass, and at no other place."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

PASSES = """
from headrace.core.failpoint import failpoint
for n in range(1, 5):
    failpoint("other")
    failpoint("epoch.committed")
    print(n, flush=True)
"""


@pytest.mark.parametrize(
    ("asked", "passed", "code"),
    [
        ("epoch.committed:1", "", -signal.SIGKILL),
        ("epoch.committed:3", "1\n2\n", -signal.SIGKILL),
        ("epoch.committed", "", -signal.SIGKILL),
        ("epoch.committed:9", "1\n2\n3\n4\n", 0),
        ("epoch:1", "1\n2\n3\n4\n", 0),
        ("", "1\n2\n3\n4\n", 0),
    ],
)
def test_process_is_killed_at_the_asked_pass_and_only_there(
    asked: str, passed: str, code: int
) -> None:
    told = os.environ | {"HEADRACE_FAILPOINT": asked}
    ran = subprocess.run([sys.executable, "-c", PASSES], env=told, capture_output=True, text=True)
    assert (ran.stdout, ran.returncode, ran.stderr) == (passed, code, "")
