"""A real PostgreSQL for the tests of one worker, on a socket in a folder of its own.

It is started at its first use, with Debian's binaries; a test that needs it fails and names the
package if they are missing. A server refuses to run as root, who starts it as Debian's user.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

_USER = "postgres"
_CONFIGURATION = """
listen_addresses = ''
fsync = off
full_page_writes = off
max_connections = 200
shared_buffers = '32MB'
"""


class PostgresServer:
    """One server, with one database."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="headrace-postgres-"))
        self._as: dict[str, Any] = {"user": _USER} if os.geteuid() == 0 else {}
        if self._as:
            shutil.chown(self.folder, _USER)
        self.data = self.folder / "data"
        self._run("initdb", "-D", str(self.data), "-A", "trust", "-U", _USER, "-E", "UTF8", "-N")
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(_CONFIGURATION + f"unix_socket_directories = '{self.folder}'\n")
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://{_USER}@/postgres?host={self.folder}"

    def start(self) -> None:
        command = [_program("postgres"), "-D", str(self.data)]
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, **self._as)
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url).close()
                return
            except psycopg.OperationalError:
                assert self.process.poll() is None, self._log()
                assert time.monotonic() < deadline, self._log()
                time.sleep(0.05)

    def kill(self) -> None:
        """As a power cut of its machine, but for what it has not synced."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.folder)

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [_program(program), *arguments], capture_output=True, text=True, **self._as
        )
        assert done.returncode == 0, done.stderr

    def _log(self) -> str:
        return (self.folder / "log").read_text()[-2_000:]


def _program(name: str) -> str:
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    path = shutil.which(name) or (str(found[-1]) if found else None)
    if path is None:
        pytest.fail(f"this test runs PostgreSQL's {name}: install the package postgresql")
    return path
