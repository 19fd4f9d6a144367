"""Threads that read a type for the first time at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

# Threads change places as often as they can, so that an unlearned type ends about every third
# process.
CODE = """
import sys, threading
import msgspec
from headrace.api.resources.status import ProjectStatus
TEXT = b'{"name":"a","state":"","reason":"","started_at":null,"url":null,"streams":[],"views":[]}'
sys.setswitchinterval(1e-6)
barrier = threading.Barrier(8)
def read():
    barrier.wait()
    msgspec.json.decode(TEXT, type=ProjectStatus)
threads = [threading.Thread(target=read) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


@pytest.mark.parametrize("turn", range(6))
def test_threads_that_begin_at_once_all_read_a_status(turn: int) -> None:
    root = Path(__file__).parents[2]
    ended = subprocess.run([sys.executable, "-c", CODE], cwd=root, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
