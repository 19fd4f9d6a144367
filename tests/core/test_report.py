"""A run goes on though nobody can read of it."""

from __future__ import annotations

import errno

from headrace.core.report import unfailing


def test_a_report_that_cannot_be_written_is_left_out() -> None:
    told = list[str]()

    def report(kind: str, fields: dict[str, object]) -> None:
        if kind == "progress":
            raise OSError(errno.ENOSPC, "No space left on device")
        told.append(kind)

    for kind in ("starting", "progress", "ready"):
        unfailing(report)(kind, {})
    assert told == ["starting", "ready"]
