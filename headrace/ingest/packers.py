"""The parts of an import in the order of its tasks, packed by several processes or by this one.

A small import is packed here, because a process takes longer to start. tests/ingest/test_packers.py
compares both.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack

from headrace.core.errors import Unavailable
from headrace.ingest.packer_process import PackerProcess
from headrace.ingest.packing import BlockPacker, PackSpec, PackTask, StagedPart

_TASKS_AHEAD = 2  # that each process has


def packed_parts(spec: PackSpec, tasks: Iterable[PackTask], processes: int) -> Iterator[StagedPart]:
    """The parts of these tasks; when the next is asked for, the last one was taken."""
    if processes < 2:
        yield from _packed_here(spec, tasks)
        return
    with ExitStack() as started:
        packers = [PackerProcess(spec) for _ in range(processes)]
        for packer in packers:
            started.callback(packer.stop)
        yield from _packed_by(packers, iter(tasks))


def _packed_here(spec: PackSpec, tasks: Iterable[PackTask]) -> Iterator[StagedPart]:
    packer = BlockPacker(spec)
    try:
        for task in tasks:
            yield from packer.pack(task)
    except OSError as error:
        raise Unavailable(f"a file cannot be read: {error}") from error


def _packed_by(packers: list[PackerProcess], tasks: Iterator[PackTask]) -> Iterator[StagedPart]:
    """Tasks take turns, as they are of about the same size, and so do their parts."""
    working: deque[PackerProcess] = deque()
    for turn, task in enumerate(tasks):
        packer = packers[turn % len(packers)]
        packer.start(task)
        working.append(packer)
        if len(working) == _TASKS_AHEAD * len(packers):
            yield from working.popleft().parts()
    while working:
        yield from working.popleft().parts()
