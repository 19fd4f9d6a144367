"""Named places where a test can end the process at once, as a power cut would.

`HEADRACE_FAILPOINT=epoch.committed:3` kills this process the third time it passes that name.
Without the variable a failpoint is one dictionary lookup.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

_NAME, _, _COUNT = os.environ.get("HEADRACE_FAILPOINT", "").partition(":")
_passed: Counter[str] = Counter()


def failpoint(name: str) -> None:
    """Kill this process here, if HEADRACE_FAILPOINT says so."""
    if name != _NAME:
        return
    _passed[name] += 1
    if _passed[name] == int(_COUNT or 1):
        _kill()


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
