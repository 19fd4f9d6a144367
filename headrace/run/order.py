"""What the process of a job is told: which folder it runs, with which state, where, and its turn.

It is one argument of a command line, as JSON. The project's own settings give way to it: a job's
state is shared by its versions, and it listens on loopback alone, on a free port.
tests/run/test_order.py checks it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec

from headrace.define.layout import Layout
from headrace.define.project import Project, load_project
from headrace.run.server_key import read_key


class StartOrder(msgspec.Struct, frozen=True):
    """One start of one version of a job.

    >>> StartOrder.read(StartOrder("v/1", "state", 3, "local[2]", "1g").text()).turn
    3
    """

    folder: str
    state: str
    turn: int = 0
    master: str = ""
    memory: str = ""
    served: bool = False  # by a server, with which it shares a key in its state

    @staticmethod
    def read(text: str) -> StartOrder:
        return msgspec.json.decode(text, type=StartOrder)

    def text(self) -> str:
        return msgspec.json.encode(self).decode()

    def key(self) -> bytes | None:
        """The key that is shared with the server, if there is one."""
        return read_key(Layout(Path(self.state))) if self.served else None

    def project(self) -> Project:
        """The project as this start runs it."""
        project = load_project(Path(self.folder))
        settings = project.settings
        spark = replace(
            settings.spark,
            master=self.master or settings.spark.master,
            memory=self.memory or settings.spark.memory,
        )
        http = replace(settings.http, host="127.0.0.1", port=0, tls_cert="", tls_key="")
        made = replace(settings, state=self.state, spark=spark, http=http)
        return replace(project, settings=made)
