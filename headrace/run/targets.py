"""Where a sink's panes go: a file of JSON lines, or a stream of the project.

A line ends the file only if it is whole: what a kill has left of a torn line is cut off when the
file is opened. `resume` says the number of the last pane that is there, so that exactly once goes
on after it. Into a stream, the event's id is the sink's name, what tells its numbers from those of
an earlier sink of that name, and the pane's number, by which the intake knows a pane that is sent
again. A pane whose id belongs to another event is not delivered: the intake has refused it.
tests/run/test_sinks.py checks both.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

import msgspec

from headrace.compile.plan import SinkPlan
from headrace.core.errors import Conflict, Unavailable
from headrace.core.files import sync
from headrace.core.subscription import Guarantee
from headrace.define.paths import output_file
from headrace.define.project import Project
from headrace.ingest.intake import Receipt
from headrace.serving.outbox import Waiting

SUBMIT_S_MAX = 60.0
_BLOCK = 1 << 16
Submit = Callable[[str, Sequence[bytes]], Future[Receipt]]


class Target(Protocol):
    def resume(self) -> int:
        """The number of the last pane that is certainly there; 0 if that is not known."""

    def write(self, panes: Waiting, begun: str) -> None:
        """Deliver; when it returns, they are durable, unless they may be lost. `begun` tells their
        numbers from those of an earlier sink of the same name.
        """


class FileTarget:
    """One JSON object a line, appended."""

    def __init__(self, path: Path, *, synced: bool = True) -> None:
        self.path, self.synced = path, synced
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._open("ab"):
            pass
        sync(path.parent)
        self._cut()

    def _open(self, mode: str) -> BinaryIO:
        # The path was resolved: a link that stands there now was put there since.
        return cast(BinaryIO, open(self.path, mode, opener=_unlinked))

    def _cut(self) -> None:
        """Cut off a line that was not finished."""
        with self._open("r+b") as file:
            end = file.seek(0, os.SEEK_END)
            whole = _line_start(file, end)
            if whole != end:
                file.truncate(whole)
                os.fsync(file.fileno())

    def resume(self) -> int:
        with self._open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            if end == 0:
                return 0
            start = _line_start(file, end - 1)
            file.seek(start)
            line = file.read(end - start)
        try:
            return int(msgspec.json.decode(line)["sequence"])
        except (msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
            raise Unavailable(
                f"the last line of {self.path.name} is not a pane, so it is not known how far "
                "the sink has come",
                hint="move the file away, or give the sink another one.",
            ) from error

    def write(self, panes: Waiting, begun: str = "") -> None:
        with self._open("ab") as file:
            file.write(b"".join(pane + b"\n" for _, pane in panes))
            file.flush()
            if self.synced:
                os.fsync(file.fileno())


class StreamTarget:
    """Each pane is an event of a stream: the row's columns, and what the pane says of them."""

    def __init__(self, sink: SinkPlan, submit: Submit) -> None:
        self.sink, self.submit = sink, submit

    def resume(self) -> int:
        return 0

    def write(self, panes: Waiting, begun: str) -> None:
        events = [msgspec.json.encode(self._event(pane, begun)) for _, pane in panes]
        receipt = self.submit(self.sink.target, events).result(SUBMIT_S_MAX)
        if receipt.conflicts:
            raise Conflict(
                f"stream '{self.sink.target}' has other events with the ids of "
                f"{receipt.conflicts} panes",
                hint="they are sent again with new ids.",
            )

    def _event(self, encoded: bytes, begun: str) -> dict[str, Any]:
        pane = msgspec.json.decode(encoded)
        said = {f"pane_{name}": pane[name] for name in ("op", "timing", "last", "sequence")}
        event = {**said, "pane_index": pane["pane"], **flat(pane["row"])}
        if self.sink.id is not None:
            event[self.sink.id] = f"{self.sink.name}:{begun}:{pane['sequence']}"
        return event


def target_of(sink: SinkPlan, project: Project, submit: Submit) -> Target:
    if sink.into == "stream":
        return StreamTarget(sink, submit)
    synced = sink.guarantee is not Guarantee.AT_MOST_ONCE
    return FileTarget(output_file(project, sink.target, f"sink '{sink.name}'"), synced=synced)


def flat(row: dict[str, Any]) -> dict[str, Any]:
    """Windows as two columns, because a stream has plain ones."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict) and value.keys() == {"start", "end"}:
            flat |= {f"{name}_start": value["start"], f"{name}_end": value["end"]}
        else:
            flat[name] = value
    return flat


def _unlinked(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o644)


def _line_start(file: BinaryIO, end: int) -> int:
    """Where the line begins that ends at `end`; `end` itself if a line begins there."""
    while end > 0:
        start = max(0, end - _BLOCK)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
