"""The deployed definitions, for editors too: names, columns, types, functions, keywords."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec.structs import replace

from headrace.access.caller import Caller
from headrace.api.get_request import Endpoint, GetRequest, RequestHandler
from headrace.api.needs import ANY_USER
from headrace.api.read_access import may_read, may_read_all, readable


class CatalogColumn(msgspec.Struct, frozen=True):
    """A column. `exact` is false if its values may be estimates, with the error and the reason;
    `generated` is the expression of a computed column.
    """

    name: str
    type: str | None  # None: only Spark knows it
    nullable: bool = True
    key: bool = False
    exact: bool = True
    error: float | None = None
    error_of: str | None = None  # value, rank or events
    why: str | None = None
    generated: str | None = None


class WatermarkInfo(msgspec.Struct, frozen=True):
    """The column of event time, and the delay after which an event is late."""

    column: str
    delay_ms: int


class CatalogStream(msgspec.Struct, frozen=True):
    """A declared stream, or one derived from others. Fields that do not apply are null."""

    name: str
    kind: Literal["declared", "derived"]
    columns: list[CatalogColumn]
    origin: str
    sql: str | None = None  # of a derived one
    source: str | None = None
    format: str | None = None
    partitions: int | None = None
    watermark: WatermarkInfo | None = None
    key: str | None = None
    id: str | None = None
    reads: list[str] = []  # streams and tables
    sample: str | None = None  # a valid record of a declared stream


class CatalogTable(msgspec.Struct, frozen=True):
    name: str
    columns: list[CatalogColumn]
    origin: str
    format: str
    location: str
    version: str | None = None  # a short hash of the content that is in use
    loaded_at: str | None = None


class ViewVersion(msgspec.Struct, frozen=True):
    """A version of a view: `building` until its first generation, then `live`."""

    id: str
    state: str
    since: list[int]  # speed's rows of it begin at this position
    live_at: str | None = None  # time of the promotion of its first generation, if still known


class CatalogView(msgspec.Struct, frozen=True):
    name: str
    kind: str  # mergeable, carried, read
    columns: list[CatalogColumn]
    origin: str
    sql: str
    stream: str  # the flow that maintains it; empty for a view over other views
    reads: list[str]  # streams, tables and views
    versions: list[ViewVersion]


class CatalogRule(msgspec.Struct, frozen=True):
    name: str
    state: str
    severity: str
    origin: str
    sql: str
    columns: list[str]
    reads: list[str]
    actions: list[str]


class CatalogWatch(msgspec.Struct, frozen=True):
    name: str
    state: str
    severity: str
    sql: str
    reads: list[str]


class CatalogSink(msgspec.Struct, frozen=True):
    name: str
    view: str
    into: str
    target: str
    guarantee: str
    origin: str


class FunctionInfo(msgspec.Struct, frozen=True):
    """A function of SQL. `takes` and `returns` are known for the project's own functions."""

    name: str
    kind: Literal["aggregate", "window", "scalar", "project"]
    takes: list[str] | None = None
    returns: str | None = None


class Catalog(msgspec.Struct, frozen=True):
    """All names of a project."""

    name: str
    streams: list[CatalogStream]
    tables: list[CatalogTable]
    views: list[CatalogView]
    rules: list[CatalogRule]
    watches: list[CatalogWatch]
    sinks: list[CatalogSink]
    functions: list[FunctionInfo]
    keywords: list[str]

    @property
    def names(self) -> set[str]:
        """All names, except functions and keywords."""
        kinds = self.streams, self.tables, self.views, self.rules, self.watches, self.sinks
        return {one.name for kind in kinds for one in kind}


class CatalogRequest(GetRequest[Catalog], frozen=True):
    """All names of the project, with columns, types and definitions."""

    endpoint = Endpoint("/v1/catalog", "catalog", ANY_USER, stored=True)

    def readable(self, service: RequestHandler, caller: Caller) -> Catalog:
        """Definitions are not cut: they are part of a readable object."""
        catalog = service.ask(self)
        if may_read_all(caller):
            return catalog
        return replace(
            catalog,
            streams=readable("stream", catalog.streams, caller),
            tables=readable("table", catalog.tables, caller),
            views=readable("view", catalog.views, caller),
            rules=readable("rule", catalog.rules, caller),
            watches=readable("rule", catalog.watches, caller),
            sinks=[sink for sink in catalog.sinks if may_read(caller, "view", sink.view)],
        )
