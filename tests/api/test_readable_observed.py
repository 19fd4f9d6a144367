"""What is observed is cut down to what one may read, and names nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from headrace.access.caller import OWNER, Allowance, Caller
from headrace.api.observed.catalog import CatalogSink, CatalogStream, CatalogView
from headrace.api.observed.epochs import Epochs, EpochShape, GenerationShape
from headrace.api.observed.topology import Edge, Node, Topology
from headrace.api.readable_observed import (
    readable_about,
    readable_catalog,
    readable_epochs,
    readable_lineage,
    readable_quality,
    readable_topology,
    readable_trace,
)
from headrace.compile.lineage import ColumnLineage, ColumnRef, Lineage
from headrace.core.errors import Forbidden
from headrace.serving.store import AuditResult

from .conftest import ABOUT, ALERT, CATALOG, QUALITY, TRACE

AT = "2026-01-01T00:00:00Z"
ADA = Caller(
    "ada", "t", "shop", tuple(Allowance.of("read", on) for on in ("stream:clicks", "view:visitors"))
)


def node(id: str, **more: Any) -> Node:
    kind, _, name = id.partition(":")
    return Node(id, kind, name, "ok", **more)  # type: ignore[arg-type]


def catalog_view(name: str, stream: str) -> CatalogView:
    return CatalogView(name, "mergeable", [], "shop.sql:3", "SELECT 1", stream, [stream], [])


CATALOGUE = replace(
    CATALOG,
    streams=[
        *CATALOG.streams,
        CatalogStream("orders", "declared", [], "shop.sql:2"),
    ],
    views=[
        catalog_view("visitors", "clicks"),
        catalog_view("sales", "orders"),
        catalog_view("paired", "clicks+orders"),
    ],
    sinks=[
        CatalogSink("told", "visitors", "file", "a", "exactly once", "shop.sql:8"),
        CatalogSink("sold", "sales", "file", "b", "exactly once", "shop.sql:9"),
    ],
)


class Observatory:
    def catalog(self) -> Any:
        return CATALOGUE

    def lineage(self) -> Lineage:
        sources = [ColumnRef("clicks", "url"), ColumnRef("orders", "url")]
        columns = [ColumnLineage(name, "url", sources) for name in ("visitors", "sales")]
        return Lineage(columns, {"clicks": ["visitors", "sales", "told"], "orders": ["sales"]})

    def about(self, view: str) -> Any:
        return replace(ABOUT, touches=["told", "sales"])

    def epochs(self, stream: str | None = None, limit: int = 100) -> Epochs:
        audits = [AuditResult(view, 1, 0, (), "") for view in ("visitors", "sales")]
        epochs = [
            EpochShape(number, flow, [0], [1], 1, 0, 0, 0, AT, AT, 1.0)
            for number, flow in ((3, "clicks+orders"), (2, "orders"), (1, "clicks"))
        ]
        generations = [GenerationShape(e.stream, 1, [1], 1, AT, audits) for e in epochs]
        chosen = [e for e in epochs if stream in (None, e.stream)]
        return Epochs(chosen, [g for g in generations if stream in (None, g.stream)])


LOOKED: Any = Observatory()


def test_topology_ends_where_one_may_look() -> None:
    whole = Topology(
        AT,
        [
            node("log:clicks"), node("speed:clicks"), node("speed:clicks+orders"),
            node("view:visitors", reason="orders broke", cause="log:orders"), node("view:sales"),
            node("sink:told"), node("sink:sold"), node("rule:slow"),
        ],
        [
            Edge("log:clicks", "speed:clicks"), Edge("speed:clicks", "view:visitors"),
            Edge("log:clicks", "speed:clicks+orders"), Edge("view:visitors", "sink:told"),
            Edge("view:sales", "sink:sold"),
        ],
    )  # fmt: skip
    cut = readable_topology(whole, ADA)
    assert [one.id for one in cut.nodes] == [
        "log:clicks", "speed:clicks", "view:visitors", "sink:told",
    ]  # fmt: skip
    assert [(edge.source, edge.target) for edge in cut.edges] == [
        ("log:clicks", "speed:clicks"),
        ("speed:clicks", "view:visitors"),
        ("view:visitors", "sink:told"),
    ]
    assert (cut.nodes[2].cause, cut.nodes[2].reason) == (None, "")
    assert readable_topology(whole, OWNER) == whole


def test_catalog_and_lineage_name_what_one_may_read() -> None:
    cut = readable_catalog(CATALOGUE, ADA)
    assert [one.name for one in (*cut.streams, *cut.views, *cut.sinks)] == [
        "clicks", "visitors", "told",
    ]  # fmt: skip
    lineage = readable_lineage(LOOKED, ADA)
    assert lineage.columns == [ColumnLineage("visitors", "url", [ColumnRef("clicks", "url")])]
    assert lineage.touched_by == {"clicks": ["visitors", "told"]}
    assert readable_about(LOOKED, "visitors", ADA).touches == ["told"]
    assert readable_lineage(LOOKED, OWNER) == LOOKED.lineage()


def test_epochs_are_of_the_flows_that_one_may_read() -> None:
    cut = readable_epochs(LOOKED, None, 100, ADA)
    assert [epoch.stream for epoch in cut.epochs] == ["clicks"]
    assert [[audit.view for audit in one.audits] for one in cut.generations] == [["visitors"]]
    assert readable_epochs(LOOKED, "clicks", 100, ADA) == cut
    assert len(readable_epochs(LOOKED, None, 100, OWNER).epochs) == 3
    with pytest.raises(Forbidden, match="ada may not read stream 'orders'"):
        readable_epochs(LOOKED, "clicks+orders", 100, ADA)


def test_quality_is_of_the_streams_that_one_may_read() -> None:
    foreign = replace(QUALITY.streams[0], name="orders")
    cut = readable_quality(replace(QUALITY, streams=[*QUALITY.streams, foreign]), ADA)
    assert [stream.name for stream in cut.streams] == ["clicks"]


def test_trace_shows_rows_and_alerts_that_one_may_read() -> None:
    counted = TRACE.views[0]
    whole = replace(TRACE, views=[counted, replace(counted, view="sales")], alerts=[ALERT])
    cut = readable_trace(whole, ADA)
    assert ([row.view for row in cut.views], cut.alerts) == (["visitors"], [])
    assert readable_trace(whole, OWNER) == whole
