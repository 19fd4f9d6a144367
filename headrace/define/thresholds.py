"""Reads `count(*) >= 20 WITHIN INTERVAL 2 MINUTES PER destination_ip FROM stream WHERE …`.

tests/define/test_thresholds.py checks what is read and what is refused.
"""

from __future__ import annotations

from headrace.define.definitions import NamedExpression, ThresholdDefinition
from headrace.define.tokens import TokenCursor

LEAST_MAX = 100_000


def read_threshold(tokens: TokenCursor) -> ThresholdDefinition:
    """Parse the threshold up to FROM."""
    tokens.expect("COUNT")
    tokens.expect("(")
    counted = _counted(tokens)
    tokens.expect(")")
    origin, more = tokens.origin, tokens.accept(">")
    if not more:
        tokens.expect(">=")
    text = tokens.word()
    least = int(text) + more if text.isdecimal() else 0
    if not 1 <= least <= LEAST_MAX:
        raise tokens.error(f"a threshold must be a whole number from 1 to {LEAST_MAX}", origin)
    tokens.expect("WITHIN")
    tokens.expect("INTERVAL")
    within_us = tokens.interval()
    if within_us <= 0:
        raise tokens.error("the interval must be greater than zero", origin)
    keys: list[str] = []
    while tokens.accept("," if keys else "PER"):
        keys.append(tokens.name("a column"))
    if not tokens.starts_with("FROM"):
        tokens.expect("FROM")
    return ThresholdDefinition(tuple(keys), least, within_us, counted)


def _counted(tokens: TokenCursor) -> NamedExpression | None:
    """What is between the parentheses: `*`, or DISTINCT and SQL."""
    if tokens.accept("*"):
        return None
    tokens.expect("DISTINCT")
    origin, first, depth = tokens.origin, tokens.at, 0
    while not tokens.done and (depth or not tokens.starts_with(")")):
        depth += tokens.starts_with("(") - tokens.starts_with(")")
        tokens.at += 1
    if tokens.at == first:
        raise tokens.error("DISTINCT requires a column")
    return NamedExpression("", tokens.text_from(first), origin)
