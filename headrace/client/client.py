"""The client of a project that runs, here or elsewhere.

It asks over HTTP what the command line asks, and every error is one of headrace.core.errors with
the sentence that the server had. Nothing is asked before it is wanted, so making one costs nothing.
tests/client/test_client.py speaks to a real server.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from headrace.api.client import TOKEN_VARIABLE, Remote
from headrace.api.listen import listen
from headrace.api.service import Status
from headrace.client.names import Names
from headrace.client.question import Answered, Asked, Question
from headrace.client.sending import Event, send
from headrace.core.errors import Forbidden, NotFound, Unavailable
from headrace.core.subscription import subscription
from headrace.ingest.intake import Receipt
from headrace.serving.kinds import Kind, kind_of


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream of the project, to send to."""

    client: Client
    name: str

    def send(self, events: Iterable[Event]) -> Receipt:
        return self.client.send(self.name, events)


class Client:
    """A project, from Python; `headrace.connect` makes one.

    client = headrace.connect("http://127.0.0.1:8080")
    client.send("clicks", [{"user": "ada", "url": "/home", "ts": "2026-11-15T12:00:00Z"}])
    client.views.visitors.where(url="/home").to_pandas()
    """

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    @property
    def url(self) -> str:
        return self._remote.url

    def view(self, name: str) -> Question:
        """A question about a view; asked when its rows are wanted."""
        return Question(self._remote, Asked(name))

    def sql(self, text: str, limit: int | None = None) -> Answered:
        """An ad-hoc SELECT over views, or over streams and tables."""
        return Answered(partial(self._remote.sql, text, limit))

    def send(self, stream: str, events: Iterable[Event]) -> Receipt:
        """Append events; the receipt comes when all are durable."""
        return send(self._remote, stream, events)

    def subscribe(
        self,
        name: str,
        *,
        where: str | None = None,
        emit: str | None = None,
        after: str | None = None,
    ) -> Iterator[dict[str, Any]]:
        """What a subscription to a view or stream says, for ever; it comes back by itself where it
        breaks off. The rows of a view have the types of its columns, those of a stream those of
        JSON.

        for heard in client.subscribe("visitors", where="url = '/home'", emit="ON TIME"):
            print(heard["data"])
        """
        kinds = self._kinds(name)
        text = subscription(name, where, emit)
        for heard in listen(self._remote, text, after):
            yield {**heard, "data": _typed(heard["data"], kinds)}

    def _kinds(self, name: str) -> dict[str, Kind]:
        """The types of a view's columns. What is no view that may be read may yet be a stream."""
        try:
            columns = self._remote.view(name, limit=1).columns
        except (NotFound, Forbidden):
            return {}
        return {column: kind_of(info.type) for column, info in columns.items()}

    @property
    def views(self) -> Names[Question]:
        """The views by name: client.views.visitors."""
        return Names("view", [view.name for view in self.status().views], self.view)

    @property
    def streams(self) -> Names[Stream]:
        """The streams by name: client.streams.clicks.send(…)."""
        names = [stream.name for stream in self.status().streams]
        return Names("stream", names, partial(Stream, self))

    def status(self) -> Status:
        """How the project is doing."""
        return self._remote.status()

    def close(self) -> None:
        self._remote.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"headrace.connect({self.url!r})"


def connect(url: str | Path | None = None, token: str | None = None) -> Client:
    """A client of the project at a URL, or of the running project in a folder.

    Without one it is the current folder's project, found as the command line finds it. The token
    may also be in HEADRACE_TOKEN; for a folder it is else the run's own.
    """
    if isinstance(url, str) and url.startswith(("http://", "https://")):
        return Client(Remote(url, token or os.environ.get(TOKEN_VARIABLE)))
    return Client(_in_folder(Path(url) if url else None, token))


def _in_folder(given: Path | None, token: str | None) -> Remote:
    from headrace.define.folder import found_folder
    from headrace.define.project import Project
    from headrace.define.settings import load_settings
    from headrace.run.remote import reached, running

    folder = found_folder(given)
    # Only its settings: a definition with a mistake is no reason to refuse the running project.
    project = Project(folder, load_settings(folder), ())
    if url := running(project):
        return reached(project, url, token)
    raise Unavailable(
        f"the project in {folder} does not run",
        hint="start it with `headrace run`, or give the URL of one that runs elsewhere.",
    )


def _typed(data: Any, kinds: dict[str, Kind]) -> Any:
    """What was heard, with the rows in it as the types of their columns say."""
    if not isinstance(data, dict):
        return data
    return {name: _typed_part(name, part, kinds) for name, part in data.items()}


def _typed_part(name: str, part: Any, kinds: dict[str, Kind]) -> Any:
    if name == "rows":
        return [_typed_row(row, kinds) for row in part]
    if name in ("row", "key") and isinstance(part, dict):
        return _typed(part, kinds) if set(part) == {"rows"} else _typed_row(part, kinds)
    if name == "window" and part:
        return kind_of("WINDOW").value(part)
    return part


def _typed_row(row: dict[str, Any], kinds: dict[str, Kind]) -> dict[str, Any]:
    return {
        name: kinds[name].value(value) if name in kinds else value for name, value in row.items()
    }
