"""Where a project's state lies. Stream names are names of definitions, so they are safe as
folders.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headrace.define.project import Project


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders and files below a project's state folder."""

    state: Path

    @staticmethod
    def of(project: Project) -> Layout:
        return Layout(project.state)

    def log(self, stream: str) -> Path:
        return self.state / "log" / stream

    def master(self, stream: str) -> Path:
        return self.state / "master" / stream

    @property
    def store(self) -> Path:
        return self.state / "serving.db"

    @property
    def lock(self) -> Path:
        return self.state / "lock"

    @property
    def running(self) -> Path:
        """Says where a running instance answers."""
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
    def ingest(self) -> Path:
        return self.state / "ingest"

    def work(self, purpose: str) -> Path:
        """Scratch of Spark; anything in it may be deleted while nothing runs."""
        return self.state / "work" / purpose
