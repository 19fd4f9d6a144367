"""What is observed is cut down to what one may read, and names nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest
from msgspec.structs import replace

from headrace.access.caller import OWNER, Caller, Permission
from headrace.api.get_request import A, GetRequest
from headrace.api.resources.catalog import CatalogRequest, CatalogSink, CatalogStream, CatalogView
from headrace.api.resources.epochs import EpochInfo, Epochs, EpochsRequest, GenerationInfo
from headrace.api.resources.events import EventRequest
from headrace.api.resources.lineage import LineageRequest
from headrace.api.resources.quality import QualityRequest
from headrace.api.resources.topology import Edge, Node, Topology, TopologyRequest
from headrace.api.resources.view_detail import ViewDetailRequest
from headrace.compile.lineage import ColumnLineage, ColumnRef, Lineage
from headrace.core.errors import Forbidden
from headrace.serving.store import AuditResult

from .conftest import ABOUT, ALERT, CATALOG, QUALITY, TRACE

AT = "2026-01-01T00:00:00Z"
ADA = Caller(
    "ada",
    "t",
    "shop",
    tuple(Permission.of("read", on) for on in ("stream:clicks", "view:visitors")),
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


SOURCES = [ColumnRef("clicks", "url"), ColumnRef("orders", "url")]
LINEAGE = Lineage(
    [ColumnLineage(name, "url", SOURCES) for name in ("visitors", "sales")],
    {"clicks": ["visitors", "sales", "told"], "orders": ["sales"]},
)


def epochs(asked: EpochsRequest) -> Epochs:
    audits = [AuditResult(view, 1, 0, (), "") for view in ("visitors", "sales")]
    epochs = [
        EpochInfo(number, flow, [0], [1], 1, 0, 0, 0, AT, AT, 1.0)
        for number, flow in ((3, "clicks+orders"), (2, "orders"), (1, "clicks"))
        if asked.stream in (None, flow)
    ]
    generations = [GenerationInfo(e.stream, 1, [1], 1, AT, audits) for e in epochs]
    return Epochs(epochs, generations, len(epochs), len(epochs))


@dataclass
class Project:
    """Answers from its own lists, or what it was told."""

    told: Any = None

    def ask(self, question: GetRequest[A]) -> A:
        answer: Any
        match question:
            case CatalogRequest():
                answer = CATALOGUE
            case LineageRequest():
                answer = LINEAGE
            case EpochsRequest():
                answer = epochs(question)
            case _:
                answer = self.told
        return cast(A, answer)


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
    cut = TopologyRequest().readable(Project(whole), ADA)
    assert [one.id for one in cut.nodes] == [
        "log:clicks", "speed:clicks", "view:visitors", "sink:told",
    ]  # fmt: skip
    assert [(edge.source, edge.target) for edge in cut.edges] == [
        ("log:clicks", "speed:clicks"),
        ("speed:clicks", "view:visitors"),
        ("view:visitors", "sink:told"),
    ]
    assert (cut.nodes[2].cause, cut.nodes[2].reason) == (None, "")
    assert TopologyRequest().readable(Project(whole), OWNER) == whole


def test_catalog_and_lineage_name_what_one_may_read() -> None:
    cut = CatalogRequest().readable(Project(), ADA)
    assert [one.name for one in (*cut.streams, *cut.views, *cut.sinks)] == [
        "clicks", "visitors", "told",
    ]  # fmt: skip
    lineage = LineageRequest().readable(Project(), ADA)
    assert lineage.columns == [ColumnLineage("visitors", "url", [ColumnRef("clicks", "url")])]
    assert lineage.touched_by == {"clicks": ["visitors", "told"]}
    about = Project(replace(ABOUT, touches=["told", "sales"]))
    assert ViewDetailRequest("visitors").readable(about, ADA).touches == ["told"]
    assert LineageRequest().readable(Project(), OWNER) == LINEAGE


def test_epochs_are_of_the_flows_that_one_may_read() -> None:
    cut = EpochsRequest().readable(Project(), ADA)
    assert [epoch.stream for epoch in cut.epochs] == ["clicks"]
    assert (cut.epochs_total, cut.generations_total) == (1, 1)
    assert [[audit.view for audit in one.audits] for one in cut.generations] == [["visitors"]]
    assert EpochsRequest("clicks").readable(Project(), ADA) == cut
    assert len(EpochsRequest().readable(Project(), OWNER).epochs) == 3
    with pytest.raises(Forbidden, match="ada may not read stream 'orders'"):
        EpochsRequest("clicks+orders").readable(Project(), ADA)
    for nothing in ("", "+", "clicks+"):
        with pytest.raises(Forbidden):
            EpochsRequest(nothing).readable(Project(), ADA)


def test_quality_is_of_the_streams_that_one_may_read() -> None:
    foreign = replace(QUALITY.streams[0], name="orders")
    whole = replace(QUALITY, streams=[*QUALITY.streams, foreign])
    cut = QualityRequest().readable(Project(whole), ADA)
    assert [stream.name for stream in cut.streams] == ["clicks"]


def test_trace_shows_rows_and_alerts_that_one_may_read() -> None:
    counted = TRACE.views[0]
    whole = replace(TRACE, views=[counted, replace(counted, view="sales")], alerts=[ALERT])
    question = EventRequest("clicks", 0, 3)
    cut = question.readable(Project(whole), ADA)
    assert ([row.view for row in cut.views], cut.alerts) == (["visitors"], [])
    assert question.readable(Project(whole), OWNER) == whole
