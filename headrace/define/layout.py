"""The paths of a project's state, which only its owner can read.

Stream names are names of definitions, so they are safe as folders. The process that creates the
state folder has a umask under which no other user of the machine can read a file in it, whichever
library or child process creates the file. tests/run/test_private.py checks the modes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from headrace.core.address import LogAddress, StoreAddress
from headrace.define.project import Project

_OTHERS = 0o077


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders and files below a project's state folder."""

    state: Path
    database: StoreAddress | None = None  # of a store that is not in the state folder

    def make_state(self) -> None:
        """Make the state folder, or close one that others could read."""
        os.umask(_OTHERS)
        self.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A mounted volume may belong to another user, who then controls its access.
        if (found := self.state.stat()).st_uid == os.geteuid() and found.st_mode & _OTHERS:
            self.state.chmod(0o700)

    @staticmethod
    def of(project: Project) -> Layout:
        store = project.settings.store
        if not store.url:
            return Layout(project.state)
        schema = store.schema or project.settings.name
        return Layout(project.state, StoreAddress.of_postgres(store.url, schema))

    def log(self, stream: str) -> LogAddress:
        return LogAddress.of_files(self.logs / stream)

    @property
    def logs(self) -> Path:
        """The folder of the embedded logs."""
        return self.state / "log"

    def master(self, stream: str) -> Path:
        return self.state / "master" / stream

    @property
    def store(self) -> StoreAddress:
        return self.database or StoreAddress.of_file(self.state / "serving.db")

    @property
    def lock(self) -> Path:
        return self.state / "lock"

    @property
    def running(self) -> Path:
        """The address of the running instance."""
        return self.state / "run.json"

    @property
    def token(self) -> Path:
        """The token of the running instance, for commands on this machine."""
        return self.state / "run.token"

    @property
    def access(self) -> Path:
        """Users, tokens, grants and the audit log."""
        return self.state / "access.db"

    @property
    def server_key(self) -> Path:
        """What a job shares with its server, if it has one."""
        return self.state / "server.key"

    @property
    def former_cursors(self) -> Path:
        """Where an earlier Headrace kept the cursors of imported files."""
        return self.state / "ingest"

    def work(self, purpose: str) -> Path:
        """Scratch of Spark; anything in it may be deleted while nothing runs."""
        return self.state / "work" / purpose
