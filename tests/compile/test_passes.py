"""Each pass makes a new context, and changes nothing of the one that it is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headrace.compile import passes
from headrace.compile.context import CompileContext
from headrace.define.dialect import sql_of

from .conftest import Compile

PROJECT = """
CREATE STREAM orders (id INT, user STRING, price DOUBLE, ts TIMESTAMP,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE);
CREATE STREAM payments (id INT, paid DOUBLE, ts TIMESTAMP,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE);
CREATE STREAM running AS SELECT user, sum(price) OVER (PARTITION BY user ORDER BY ts) AS total
  FROM orders;
CREATE RULES marks ON orders RULE dear WHEN price > 9 THEN SET mark = 'dear';
CREATE VIEW matched AS SELECT o.user, count(*) AS n FROM orders o JOIN payments p
  ON o.id = p.id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 1 HOUR GROUP BY o.user;
CREATE VIEW totals AS SELECT user, max(total) AS total FROM running GROUP BY user;
CREATE VIEW marked AS SELECT mark, count(*) AS n FROM marks GROUP BY mark;
CREATE VIEW best AS SELECT max(total) AS total FROM totals;
CREATE RULE large AS SELECT user, price FROM orders WHERE price > 100;
CREATE WATCH cheap AS SELECT * FROM orders WHERE price < 5 AFTER 1 MATCH;
"""


def _said(context: CompileContext) -> tuple[Any, ...]:
    """All that a context holds, the trees of its queries as text."""
    queries = [(name, found, sql_of(found.select)) for name, found in context.queries.items()]
    return context.plan, queries, dict(context.schemas), dict(context.joins)


def test_no_pass_changes_what_it_is_given(
    compiled: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def watched(
        apply: Callable[[CompileContext], CompileContext],
    ) -> Callable[[CompileContext], CompileContext]:
        def run(context: CompileContext) -> CompileContext:
            before = _said(context)
            after = apply(context)
            assert _said(context) == before, f"{apply.__name__} has changed its context"
            assert _said(after) != before, f"{apply.__name__} does nothing"
            made.append(apply.__name__)
            return after

        return run

    monkeypatch.setattr(passes, "PASSES", tuple(map(watched, passes.PASSES)))
    plan = compiled(PROJECT, sources="")
    assert len(made) == len(passes.PASSES)
    assert {view.name for view in plan.shown_views} >= {"matched", "totals", "marked", "best"}
    assert [rule.name for rule in plan.rules] == ["large"]
    assert [watch.name for watch in plan.watches] == ["cheap"]
