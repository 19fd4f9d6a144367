"""Progress reports of a run to its caller: a kind and its fields. The command line prints them;
tests/run/process.py waits for them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

Report = Callable[[str, dict[str, object]], None]


def unfailing(report: Report) -> Report:
    """The same, but a report that cannot be written (a full disk, a closed pipe) is dropped: a run
    does not end because of it. tests/core/test_report.py checks it.
    """

    def tell(kind: str, fields: dict[str, object]) -> None:
        with contextlib.suppress(OSError):
            report(kind, fields)

    return tell
