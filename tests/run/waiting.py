"""Waits for what another thread or process will bring about, with an end."""

from __future__ import annotations

import time
from collections.abc import Callable

LOOK_S = 0.05


def wait(until: Callable[[], bool], seconds: float = 60) -> None:
    ends = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < ends, f"it did not come to this in {seconds} s"
        time.sleep(LOOK_S)
