"""A plan made by hand, so that what is said about plans is tested without Spark."""

from __future__ import annotations

from headrace.compile.plan import (
    WINDOW,
    KeyPlan,
    OutputPlan,
    PartialPlan,
    Plan,
    SinkPlan,
    StreamPlan,
    TablePlan,
    ViewPlan,
)
from headrace.core.subscription import Guarantee, Shape, Subscription

CLICKS = StreamPlan(
    "clicks",
    (("user", "STRING", False), ("ts", "TIMESTAMP", False)),
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
        OutputPlan("hour", WINDOW, "k1", key="k1", window_us=3_600_000_000),
        OutputPlan("hits", "BIGINT", "coalesce(p0, 0)"),
        OutputPlan("visitors", "BIGINT", "round(p1_1)", estimate="speed"),
    ),
    stream="clicks",
    tables=("sections",),
    map_sql="SELECT url AS k0, ts AS k1, 1 AS a0, user AS a1 FROM clicks",
    keys=(
        KeyPlan("k0", "url", "STRING", "url"),
        KeyPlan("k1", "hour", WINDOW, "ts", 3_600_000_000),
    ),
    partials=(
        PartialPlan("sum", ("p0",), ("INTEGER",), ("count(a0)",)),
        PartialPlan("sketch", ("p1_0", "p1_1"), ("BLOB", "REAL"), ("sketch(a1)",), "a1"),
    ),
    having="p0 > 1",
    order=("p0 DESC",),
    limit=10,
)
TOTALS = ViewPlan(
    "totals",
    "mergeable",
    "shop.sql:20",
    (OutputPlan("n", "BIGINT", "p0"),),
    stream="clicks",
    map_sql="SELECT 1 AS a0 FROM clicks",
    partials=(PartialPlan("sum", ("p0",), ("INTEGER",), ("count(a0)",)),),
)
BUSIEST = ViewPlan(
    "busiest",
    "read",
    "shop.sql:22",
    (OutputPlan("url", "STRING", ""), OutputPlan("hits", "BIGINT", "")),
    reads=("visitors",),
    read_sql="SELECT url, hits FROM _typed_visitors",
)
TABLE = TablePlan("sections", "`url` STRING", "csv", "lookups/sections.csv")
PLAN = Plan("shop", (CLICKS,), (TABLE,), (), (VISITORS, TOTALS, BUSIEST))
SINK = SinkPlan(
    "hourly",
    Subscription("visitors", early=None, on_time=True, late=None, lateness_us=0),
    Shape("visitors", ("url", "hour"), None, "hour", None, ("clicks",)),
    "file",
    "out/hourly.jsonl",
    Guarantee.EXACTLY_ONCE,
)
