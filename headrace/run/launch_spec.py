"""How the server launches the process of a job: folder, state, Spark master, number of the launch.

It is passed on the command line as JSON and overrides the project's settings: the versions of a job
share one state folder, and a job listens on a free port of the loopback address only.
tests/run/test_launch_spec.py checks it.

The key that a job shares with its server is a file in the job's state, readable by its owner only.
The server creates it before the first launch and never replaces it, so that a restarted server
still has the key of a running job. tests/run/test_server_key.py checks the file's mode.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import replace
from pathlib import Path

import msgspec

from headrace.access.delegation import KEY_BYTES
from headrace.define.layout import Layout
from headrace.define.project import Project, load_project


def ensure_key(layout: Layout) -> bytes:
    """The key of a job; created if there is none."""
    layout.make_state()
    fresh = layout.server_key.with_suffix(".new")
    if not layout.server_key.is_file():
        fresh.unlink(missing_ok=True)
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(handle, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
        fresh.replace(layout.server_key)
    return read_key(layout)


def read_key(layout: Layout) -> bytes:
    return layout.server_key.read_bytes()


class LaunchSpec(msgspec.Struct, frozen=True):
    """One launch of one version of a job.

    >>> LaunchSpec.read(LaunchSpec("v/1", "state", 3, "local[2]", "1g").text()).turn
    3
    """

    folder: str
    state: str
    turn: int = 0
    master: str = ""
    memory: str = ""
    served: bool = False  # whether a server runs it, which shares a key in its state folder

    @staticmethod
    def read(text: str) -> LaunchSpec:
        return msgspec.json.decode(text, type=LaunchSpec)

    def text(self) -> str:
        return msgspec.json.encode(self).decode()

    def key(self) -> bytes | None:
        """The key that is shared with the server, if a server runs the job."""
        return read_key(Layout(Path(self.state))) if self.served else None

    def project(self) -> Project:
        """The project with the settings of this launch."""
        project = load_project(Path(self.folder))
        settings = project.settings
        spark = replace(
            settings.spark,
            master=self.master or settings.spark.master,
            memory=self.memory or settings.spark.memory,
        )
        http = replace(settings.http, host="127.0.0.1", port=0, tls_cert="", tls_key="")
        settings = replace(settings, state=self.state, spark=spark, http=http)
        return replace(project, settings=settings)
