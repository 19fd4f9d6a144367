"""A bound can be written in many ways, and means one distance."""

from __future__ import annotations

import pytest
from sqlglot import exp

from headrace.compile.join import JoinSide
from headrace.compile.join_bound import JoinBoundReader
from headrace.core.errors import Unsupported
from headrace.core.origin import Origin
from headrace.core.time import MINUTE, SECOND
from headrace.define.dialect import parse_query

AT = Origin("shop.sql", 1)
LEFT, RIGHT = JoinSide("o", "orders", "ts"), JoinSide("p", "payments", "at")


def bound(text: str) -> tuple[int, int]:
    on = parse_query(f"SELECT 1 FROM o JOIN p ON o.id = p.id AND {text}", AT).args["joins"][0]
    sides = {"o": LEFT, "p": RIGHT}

    def side_of(column: exp.Column) -> JoinSide | None:
        return sides.get(column.table)

    return JoinBoundReader(LEFT, RIGHT, side_of, "v").read(on.args["on"], AT)


@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [
        ("p.at BETWEEN o.ts AND o.ts + INTERVAL 10 MINUTES", 0, 10 * MINUTE),
        ("o.ts BETWEEN p.at - INTERVAL '10 minutes' AND p.at", 0, 10 * MINUTE),
        ("p.at >= o.ts AND p.at <= o.ts + INTERVAL '10' MINUTE", 0, 10 * MINUTE),
        ("o.ts <= p.at AND o.ts + INTERVAL 10 MINUTES >= p.at", 0, 10 * MINUTE),
        ("p.at > o.ts AND p.at < o.ts + INTERVAL 1 SECOND", 1, SECOND - 1),
        ("(p.at BETWEEN o.ts - INTERVAL 5 SECONDS AND o.ts)", -5 * SECOND, 0),
        ("p.at + INTERVAL 5 SECONDS BETWEEN o.ts AND o.ts", -5 * SECOND, -5 * SECOND),
        ("p.at BETWEEN o.ts AND o.ts + INTERVAL 1 MINUTE + INTERVAL 1 SECOND", 0, 61 * SECOND),
        ("(p.at >= o.ts AND (p.at <= o.ts AND p.n > 3))", 0, 0),
        ("p.at = o.ts", 0, 0),
        ("p.at BETWEEN o.ts AND o.ts + INTERVAL 9 MINUTES AND p.at <= o.ts", 0, 0),
    ],
)
def test_a_bound_is_one_distance(text: str, lower: int, upper: int) -> None:
    assert bound(text) == (lower, upper)


@pytest.mark.parametrize(
    "text",
    [
        "true",
        "p.at >= o.ts",
        "p.at BETWEEN o.ts AND o.ts + INTERVAL 1 MONTH",
        "p.at BETWEEN o.ts AND o.ts + o.patience",
        "(p.at >= o.ts OR p.at <= o.ts)",
        "p.at BETWEEN p.at AND p.at + INTERVAL 1 HOUR",
        "p.n BETWEEN o.n AND o.n + 3",
    ],
)
def test_what_does_not_bound_the_distance_from_both_sides_is_refused(text: str) -> None:
    with pytest.raises(Unsupported, match="without a bound"):
        bound(text)
