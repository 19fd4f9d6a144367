"""The disk fills up at each stage of a running project, and room is made: everything that was
acknowledged is counted, what was refused was refused with 507, and nobody has to help.

How much room is left decides which stage meets the end first: none, and a little, in which ingest,
epochs, the archive, builds and the log of the process compete for the last pages. The state folder
is a small tmpfs, so these tests need the right to mount one.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.run.asking import get, post
from tests.run.process import DEFINITIONS, SETTINGS, Running, make_project
from tests.run.waiting import wait

MIB = 1 << 20
NOW = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A project's folder whose state is on a disk of its own."""
    state = make_project(
        tmp_path / "project", SETTINGS + "[log]\nfree_bytes_min = 0\n", DEFINITIONS
    )
    state = state / ".headrace"
    state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=192m", "tmpfs", state], check=True)
    yield state
    subprocess.run(["umount", "-l", state], check=True)


def fill(ballast: Path, room: int) -> None:
    """Take all of the disk, and give back so much."""
    with ballast.open("wb", buffering=0) as file:
        size = 0
        with contextlib.suppress(OSError):
            while True:
                size += file.write(b"\0" * 65_536)
        file.truncate(max(0, size - room))


class Sender:
    """Sends numbered events, each group until it is acknowledged; `codes` are the answers."""

    def __init__(self, url: str) -> None:
        self.url, self.acknowledged, self.codes = url, 0, set[int]()

    def send(self) -> int:
        numbers = range(self.acknowledged, self.acknowledged + 50)
        events = [{"event_id": f"e{n}", "n": n, "page": f"/{n % 7}", "ts": NOW} for n in numbers]
        body = "\n".join(map(json.dumps, events))
        code = post(f"{self.url}/v1/streams/clicks/events", content=body, timeout=30).status_code
        self.codes.add(code)
        self.acknowledged += 50 * (code == 200)
        return code


def status(url: str) -> dict[str, Any]:
    return dict(get(f"{url}/v1/status", timeout=30).json())


def counted(url: str) -> int:
    rows = get(f"{url}/v1/views/total", timeout=30).json().get("rows") or [{"hits": 0}]
    return int(rows[0]["hits"])


@pytest.mark.prove
@pytest.mark.process
def test_after_room_was_made_everything_continues_by_itself(disk: Path) -> None:
    running = Running(disk.parent)
    try:
        url = str(running.wait_for("ready")["url"])
        sender = Sender(url)
        for room in (0, 16 << 10, 256 << 10, MIB):
            before = told(running)
            sender.send()
            fill(disk / "ballast", room)
            wait(partial(refused_and_troubled, sender, running, before), 90)
            (disk / "ballast").unlink()
            wait(lambda: sender.send() == 200, 30)
            wait(lambda: counted(url) == sender.acknowledged, 90)
            wait(partial(built_after, url, generation(url)), 90)
            wait(lambda: status(url)["state"] == "running", 90)
        assert sender.codes == {200, 507}
        assert status(url)["streams"][0]["balance"]["off"] == 0
        running.stop()
    finally:
        running.kill()


def told(running: Running) -> int:
    """How many problems were told."""
    return sum(report["kind"] == "problem" for report in running.reports)


def refused_and_troubled(sender: Sender, running: Running, before: int) -> bool:
    return sender.send() == 507 and told(running) > before


def generation(url: str) -> int:
    return int(status(url)["streams"][0]["generation"])


def built_after(url: str, before: int) -> bool:
    return generation(url) > before
