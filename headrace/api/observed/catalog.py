"""What is deployed, with all that an editor completes: names, columns, types, functions, words."""

from __future__ import annotations

from typing import Literal

import msgspec


class CatalogColumn(msgspec.Struct, frozen=True):
    """A column. `exact` is false where its values may be estimates, with the error and why;
    `generated` is the expression of one that is computed.
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


class WatermarkShape(msgspec.Struct, frozen=True):
    """Event time is this column; an event that is later than this is late."""

    column: str
    delay_ms: int


class CatalogStream(msgspec.Struct, frozen=True):
    """A declared stream, or one derived from others. What has no meaning for it is null."""

    name: str
    kind: Literal["declared", "derived"]
    columns: list[CatalogColumn]
    origin: str
    sql: str | None = None  # of a derived one
    source: str | None = None
    format: str | None = None
    partitions: int | None = None
    watermark: WatermarkShape | None = None
    key: str | None = None
    id: str | None = None
    reads: list[str] = []  # streams and tables


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
    live_at: str | None = None  # when its first generation was promoted, if that is still known


class CatalogView(msgspec.Struct, frozen=True):
    name: str
    kind: str  # mergeable, carried, read
    columns: list[CatalogColumn]
    origin: str
    sql: str
    stream: str  # the flow that it is kept of; empty for one that is read from other views
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


class FunctionShape(msgspec.Struct, frozen=True):
    """A function that SQL may call. `takes` and `returns` are known of the project's own."""

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
    functions: list[FunctionShape]
    keywords: list[str]
