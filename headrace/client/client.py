"""The Python client of a running project.

It uses the HTTP API as the command line does, and every error is one of headrace.core.errors with
the server's message. Requests are lazy, so creating a client costs nothing.
tests/client/test_client.py uses a real server.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from headrace.api.client import TOKEN_VARIABLE, RemoteService
from headrace.api.resources.rows import ViewRequest
from headrace.api.resources.status import ProjectStatus, StatusRequest
from headrace.api.subscribe import subscribe_remote
from headrace.client.namespace import Namespace
from headrace.client.query import ResultSet, ViewQuery
from headrace.client.sending import Event, send
from headrace.core.errors import Forbidden, NotFound, Unavailable
from headrace.core.subscription import subscription
from headrace.define.folder import find_project_folder
from headrace.ingest.intake import Receipt
from headrace.serving.value_types import ValueType, value_type


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream of the project, to send events to."""

    client: Client
    name: str

    def send(self, events: Iterable[Event]) -> Receipt:
        return self.client.send(self.name, events)


class Client:
    """A client of a project; `headrace.connect` creates one.

    client = headrace.connect("http://127.0.0.1:8080")
    client.send("clicks", [{"user": "ada", "url": "/home", "ts": "2026-11-15T12:00:00Z"}])
    client.views.visitors.where(url="/home").to_pandas()
    """

    def __init__(self, remote: RemoteService) -> None:
        self._remote = remote

    @property
    def url(self) -> str:
        return self._remote.url

    def view(self, name: str) -> ViewQuery:
        """A query of a view; sent when its rows are first read."""
        return ViewQuery(self._remote, ViewRequest(name))

    def sql(self, text: str, limit: int | None = None) -> ResultSet:
        """An ad-hoc SELECT over views, or over streams and tables."""
        return ResultSet(partial(self._remote.sql, text, limit))

    def send(self, stream: str, events: Iterable[Event]) -> Receipt:
        """Append events; returns the receipt when all are durable."""
        return send(self._remote, stream, events)

    def subscribe(
        self,
        name: str,
        *,
        where: str | None = None,
        emit: str | None = None,
        after: str | None = None,
    ) -> Iterator[dict[str, Any]]:
        """The events of a subscription to a view or stream, without end; it reconnects and resumes
        by itself. The rows of a view have the types of its columns, those of a stream have the
        types of JSON.

        for event in client.subscribe("visitors", where="url = '/home'", emit="ON TIME"):
            print(event["data"])
        """
        kinds = self._kinds(name)
        text = subscription(name, where, emit)
        for event in subscribe_remote(self._remote, text, after):
            yield {**event, "data": _typed(event["data"], kinds)}

    def _kinds(self, name: str) -> dict[str, ValueType]:
        """The types of a view's columns; none if it is a stream, or may not be read."""
        try:
            columns = self._remote.ask(ViewRequest(name, limit=1)).columns
        except (NotFound, Forbidden):
            return {}
        return {column: value_type(info.type) for column, info in columns.items()}

    @property
    def views(self) -> Namespace[ViewQuery]:
        """The views by name: client.views.visitors."""
        return Namespace("view", [view.name for view in self.status().views], self.view)

    @property
    def streams(self) -> Namespace[Stream]:
        """The streams by name: client.streams.clicks.send(…)."""
        names = [stream.name for stream in self.status().streams]
        return Namespace("stream", names, partial(Stream, self))

    def status(self) -> ProjectStatus:
        """The status of the project."""
        return self._remote.ask(StatusRequest())

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

    By default it is the project of the current folder, as for the command line. The token is by
    default HEADRACE_TOKEN; for a folder, else the run's own.
    """
    if isinstance(url, str) and url.startswith(("http://", "https://")):
        return Client(RemoteService(url, token or os.environ.get(TOKEN_VARIABLE)))
    return Client(_in_folder(Path(url) if url else None, token))


def _in_folder(given: Path | None, token: str | None) -> RemoteService:
    from headrace.define.layout import Layout
    from headrace.define.project import Project
    from headrace.define.settings import load_settings
    from headrace.run.lock import running_url
    from headrace.run.remote import remote_of

    folder = find_project_folder(given)
    # Only its settings: an invalid definition does not matter for the running project.
    project = Project(folder, load_settings(folder), ())
    if url := running_url(Layout.of(project)):
        return remote_of(project, url, token)
    raise Unavailable(
        f"the project in {folder} is not running",
        hint="start it with `headrace run`, or give the URL of a running project.",
    )


def _typed(data: Any, kinds: dict[str, ValueType]) -> Any:
    """The data of an event, with its rows converted to the types of their columns."""
    if not isinstance(data, dict):
        return data
    return {name: _typed_part(name, part, kinds) for name, part in data.items()}


def _typed_part(name: str, part: Any, kinds: dict[str, ValueType]) -> Any:
    if name == "rows":
        return [_typed_row(row, kinds) for row in part]
    if name in ("row", "key") and isinstance(part, dict):
        return _typed(part, kinds) if set(part) == {"rows"} else _typed_row(part, kinds)
    if name == "window" and part:
        return value_type("WINDOW").value(part)
    return part


def _typed_row(row: dict[str, Any], kinds: dict[str, ValueType]) -> dict[str, Any]:
    return {
        name: kinds[name].value(value) if name in kinds else value for name, value in row.items()
    }
