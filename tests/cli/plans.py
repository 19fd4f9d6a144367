"""A plan made by hand, so that what is said about plans is tested without Spark."""

from __future__ import annotations

from headrace.compile.plan import (
    WINDOW,
    CallPlan,
    ColumnPlan,
    KeyPlan,
    OutputPlan,
    PartialPlan,
    Plan,
    SinkPlan,
    StreamPlan,
    TablePlan,
    ViewPlan,
)
from headrace.compile.windows import SlidingWindow
from headrace.core.aggregate import Approximation
from headrace.core.subscription import Guarantee, Subscription, ViewShape
from headrace.core.time import HOUR
from headrace.destination.file import FileDestination

CLICKS = StreamPlan(
    "clicks",
    (ColumnPlan("user", "STRING", False), ColumnPlan("ts", "TIMESTAMP", False)),
    "json",
    2,
    ("ts", 600_000_000),
    "user",
    "event_id",
)
VISITORS = ViewPlan(
    "visitors",
    "mergeable",
    "shop.sql:14",
    (
        OutputPlan("url", "STRING", "k0", key="k0"),
        OutputPlan("hour", WINDOW, "k1", key="k1"),
        OutputPlan("hits", "BIGINT", "c0"),
        OutputPlan("visitors", "BIGINT", "c1", estimate=Approximation("speed", 0.0163)),
    ),
    stream="clicks",
    tables=("sections",),
    map_sql="SELECT url AS k0, ts AS k1, 1 AS a0, user AS a1 FROM clicks",
    keys=(
        KeyPlan("k0", "url", "STRING", "url"),
        KeyPlan("k1", "hour", WINDOW, "ts", SlidingWindow(HOUR, HOUR)),
    ),
    partials=(
        PartialPlan("sum", ("p0",), ("INTEGER",), ("count(a0)",)),
        PartialPlan("hll", ("p1",), ("BLOB",), ("sketch(a1)",)),
        PartialPlan("counted", ("p2",), ("INTEGER",), (), "a1"),
    ),
    calls=(
        CallPlan("c0", "count", "BIGINT", "coalesce(p0, 0)", whole=True),
        CallPlan("c1", "count_distinct", "BIGINT", "coalesce(p2, finish_hll(p1))"),
    ),
    having="c0 > 1",
    order=("c0 DESC",),
    limit=10,
)
TOTALS = ViewPlan(
    "totals",
    "mergeable",
    "shop.sql:20",
    (OutputPlan("n", "BIGINT", "c0"),),
    stream="clicks",
    map_sql="SELECT 1 AS a0 FROM clicks",
    partials=(PartialPlan("sum", ("p0",), ("INTEGER",), ("count(a0)",)),),
    calls=(CallPlan("c0", "count", "BIGINT", "p0"),),
)
BUSIEST = ViewPlan(
    "busiest",
    "read",
    "shop.sql:22",
    (OutputPlan("url", "STRING", ""), OutputPlan("hits", "BIGINT", "")),
    reads=("visitors",),
    read_sql="SELECT url, hits FROM visitors",
)
TABLE = TablePlan("sections", "`url` STRING", "csv", "lookups/sections.csv")
PLAN = Plan("shop", (CLICKS,), (TABLE,), (), (VISITORS, TOTALS, BUSIEST))
SINK = SinkPlan(
    "hourly",
    Subscription("visitors", early=None, on_time=True, late=None, lateness_us=0),
    ViewShape("visitors", ("url", "hour"), None, "hour", None, ("clicks",)),
    FileDestination("out/hourly.jsonl"),
    Guarantee.EXACTLY_ONCE,
)
