"""What the audit asks two engines for: the keys and aggregates of a view, each once."""

from __future__ import annotations

import pytest

from headrace.audit.aggregated import aggregated
from headrace.compile.plan import CallPlan, KeyPlan, OutputPlan, ViewPlan

KEY = KeyPlan("k0", "u", "STRING", "upper(url)")
CALLS = (
    CallPlan("c0", "sum", "BIGINT", "p0"),
    CallPlan("c1", "count", "BIGINT", "p1", whole=True),
    CallPlan("c2", "max", "TIMESTAMP", "p2"),
)
OUTPUTS = (
    OutputPlan("u", "STRING", "k0", key="k0"),
    OutputPlan("mean", "DOUBLE", "c0 / c1"),
    OutputPlan("n", "BIGINT", "c1"),
)


def view(definition: str) -> ViewPlan:
    return ViewPlan(
        "v", "mergeable", "", OUTPUTS, keys=(KEY,), calls=CALLS, having="c2 > '2026-01-01'",
        order=("c1 DESC",), limit=3, definition=definition,
    )  # fmt: skip


@pytest.mark.parametrize("group", ["upper(url)", "1", "u", "ALL"])
def test_keys_and_aggregates_are_asked_for_without_what_follows_them(group: str) -> None:
    found = aggregated(
        view(
            "SELECT upper(url) AS u, sum(ms) / count(*) AS mean, count(*) AS n FROM clicks "
            f"WHERE ms > 0 GROUP BY {group} HAVING max(ts) > '2026-01-01' ORDER BY n DESC LIMIT 3"
        )
    )
    assert found.definition == (
        "SELECT upper(url) AS _k0, sum(ms) AS _c0, count(*) AS _c1, max(ts) AS _c2 FROM clicks "
        "WHERE ms > 0 GROUP BY upper(url)"
    )
    assert [(out.name, out.type, out.finish, out.key) for out in found.outputs] == [
        ("u", "STRING", "k0", "k0"),
        ("sum (c0)", "BIGINT", "c0", None),
        ("n", "BIGINT", "c1", None),
        ("max (c2)", "TIMESTAMP", "c2", None),
    ]
    assert (found.having, found.order, found.limit) == (None, (), None)
