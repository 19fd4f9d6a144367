"""One process runs a project; when it is gone, however it ended, so is its lock."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from headrace.core.errors import AlreadyRunning
from headrace.define.layout import Layout
from headrace.run.lock import LockHolder, RunLock, holder, running_token, running_url, started_at

URL = "http://127.0.0.1:8080"
HOLDER = """
import sys
import threading
from pathlib import Path
from headrace.define.layout import Layout
from headrace.run.lock import RunLock
lock = RunLock(Layout(Path(sys.argv[1])))
lock.acquire()
lock.announce(sys.argv[2], "hr_run")
print("taken", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "state")


@pytest.mark.process
def test_a_killed_process_frees_the_lock_and_its_address_counts_no_more(layout: Layout) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(layout.state), URL],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "taken\n"
    assert running_url(layout) == URL
    with pytest.raises(AlreadyRunning) as caught:
        RunLock(layout).acquire()
    assert caught.value.message == f"this project is already running at {URL}"
    assert caught.value.hint == "stop it first, or use another folder."
    holder.kill()
    holder.communicate()
    assert layout.running.is_file(), "a killed process cannot tidy up"
    assert running_url(layout) is None
    lock = RunLock(layout)
    lock.acquire()
    assert (running_url(layout), running_token(layout)) == (None, None), "nobody is there yet"
    lock.release()


def test_whoever_looks_at_a_free_lock_is_not_taken_for_its_holder(layout: Layout) -> None:
    lock = RunLock(layout)
    lock.acquire()
    lock.release()
    looks = os.open(layout.lock, os.O_RDONLY)
    fcntl.flock(looks, fcntl.LOCK_SH | fcntl.LOCK_NB)
    assert holder(layout) is None
    os.close(looks)


def test_run_json_says_where_the_instance_answers_and_who_it_is(layout: Layout) -> None:
    lock = RunLock(layout)
    lock.acquire()
    assert running_url(layout) is None
    lock.announce(URL, "hr_run")
    assert json.loads(layout.running.read_text()) == {"url": URL, "pid": os.getpid()}
    assert running_url(layout) == URL
    assert running_token(layout) == "hr_run"
    assert stat.S_IMODE(layout.token.stat().st_mode) == 0o600, "it is for its owner alone"
    lock.release()
    assert not layout.running.exists()
    assert running_token(layout) is None
    assert running_url(layout) is None


def test_a_lock_in_one_process_is_held_once(layout: Layout) -> None:
    lock = RunLock(layout)
    lock.acquire()
    with pytest.raises(AlreadyRunning) as caught:
        RunLock(layout).acquire()
    assert caught.value.message == "this project is already running"
    assert list(layout.state.glob("*")) == [layout.lock]
    lock.release()
    lock.release()
    again = RunLock(layout)
    again.acquire()
    again.release()


@pytest.mark.parametrize("text", ["", "{", "{}", "[]"])
def test_a_run_json_that_cannot_be_read_names_no_address(layout: Layout, text: str) -> None:
    lock = RunLock(layout)
    lock.acquire()
    layout.running.write_text(text)
    assert running_url(layout) is None
    lock.release()


def test_a_project_that_never_ran_does_not_run(layout: Layout) -> None:
    assert running_url(layout) is None
    assert not layout.state.exists(), "a question makes no files"


def test_the_lock_says_who_holds_it_and_of_which_turn(layout: Layout) -> None:
    assert holder(layout) is None
    lock = RunLock(layout, turn=7)
    lock.acquire()
    assert holder(layout) == LockHolder(os.getpid(), started_at(os.getpid()) or 0, 7)
    lock.release()
    assert holder(layout) is None, "what is written counts only while the lock is held"


def test_a_holder_that_has_not_said_its_name_yet_is_there_all_the_same(layout: Layout) -> None:
    lock = RunLock(layout)
    lock.acquire()
    layout.lock.write_bytes(b"")
    assert holder(layout) == LockHolder(0, 0)
    lock.release()


@pytest.mark.process
def test_a_process_that_is_gone_was_started_at_no_time() -> None:
    ended = subprocess.Popen([sys.executable, "-S", "-c", ""])
    ended.wait()
    assert started_at(ended.pid) is None
    assert started_at(os.getpid()) == started_at(os.getpid())


def test_a_look_at_the_lock_does_not_keep_a_process_from_taking_it(layout: Layout) -> None:
    layout.state.mkdir(parents=True)
    layout.lock.touch()
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            holder(layout)

    looking = [threading.Thread(target=look) for _ in range(2)]
    for thread in looking:
        thread.start()
    try:
        for _ in range(50):
            lock = RunLock(layout)
            lock.acquire()
            lock.release()
    finally:
        stop.set()
        for thread in looking:
            thread.join()
