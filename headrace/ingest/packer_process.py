"""A process that packs tasks of an import, and the end of it in the process that started it.

Messages are pickles: the specification, then tasks and *permits* one way; parts, an error and None
at the end of each task the other way. A part needs a permit, so that parts do not fill the disk
faster than the log takes them. The process ends with its standard input, hence with its parent.
tests/ingest/test_packers.py runs some.
"""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from typing import BinaryIO, cast

from headrace.core.errors import HeadraceError, Unavailable
from headrace.ingest.packing import BlockPacker, PackSpec, PackTask, StagedPart

PERMITS = 3  # parts that wait for the log
_PERMIT = b"permit"


class PackerProcess:
    """A process with tasks; parts are read in the order of the tasks."""

    def __init__(self, spec: PackSpec) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._in = cast(BinaryIO, self._process.stdin)
        self._out = cast(BinaryIO, self._process.stdout)
        self._send(spec)

    def start(self, task: PackTask) -> None:
        """Give it a task after those that it has."""
        self._send(task)

    def parts(self) -> Iterator[StagedPart]:
        """The parts of its oldest task; when the next is asked for, the last one was taken."""
        while (answer := self._receive()) is not None:
            if isinstance(answer, BaseException):
                raise answer
            yield answer
            self._send(_PERMIT)

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _send(self, message: object) -> None:
        try:
            pickle.dump(message, self._in)
            self._in.flush()
        except BrokenPipeError as error:
            raise self._ended() from error

    def _receive(self) -> StagedPart | BaseException | None:
        try:
            answer: StagedPart | BaseException | None = pickle.load(self._out)
        except EOFError as error:
            raise self._ended() from error
        return answer

    def _ended(self) -> Unavailable:
        code = self._process.wait()
        return Unavailable(
            f"a process of the import ended with exit code {code}",
            detail="what was imported before is durable.",
            hint="run the command again: it resumes after what was taken.",
        )


class _Worker:
    """The process itself."""

    def __init__(self, given: BinaryIO, out: BinaryIO) -> None:
        self._given, self._out = given, out
        self._tasks: deque[PackTask] = deque()
        self._permits = PERMITS

    def run(self) -> None:
        packer = BlockPacker(pickle.load(self._given))
        while True:
            while not self._tasks:
                self._read()
            for part in packer.pack(self._tasks.popleft()):
                self._send(part)
                while not self._permits:
                    self._read()
                self._permits -= 1
            self._send(None)

    def _read(self) -> None:
        message = pickle.load(self._given)
        if message == _PERMIT:
            self._permits += 1
        else:
            self._tasks.append(message)

    def _send(self, answer: object) -> None:
        pickle.dump(answer, self._out)
        self._out.flush()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
    out, sys.stdout = sys.stdout.buffer, sys.stderr
    try:
        _Worker(sys.stdin.buffer, out).run()
    except (EOFError, BrokenPipeError):
        pass
    except OSError as error:
        pickle.dump(Unavailable(f"a file cannot be read: {error}"), out)
    except HeadraceError as error:
        pickle.dump(error, out)
    out.flush()


if __name__ == "__main__":
    main()
