"""How many ways a pattern may have through the rows of a key, computed from the pattern alone.

Conditions are taken to hold for any row. An unbounded repetition of a part with more than one way
has exponentially many, and under SKIP TILL ANY each variable may take any later row; otherwise the
alternatives are counted. Where conditions are of the row alone, a way that failed is not tried
again, so their number does not matter.
tests/pattern/test_steps.py has patterns of each kind.
"""

from __future__ import annotations

import math

from headrace.core.pattern import (
    Choice,
    Exclude,
    Node,
    Pattern,
    Permute,
    Repeat,
    Selection,
    Sequence,
)
from headrace.pattern.matcher import Matcher
from headrace.pattern.program import one_way


def count_ways(pattern: Pattern) -> float:
    """How many ways there may be; infinity if their number grows with the rows.

    >>> from headrace.core.pattern import Variable
    >>> count_ways(Pattern(Repeat(Variable("A"), 1, None), ()))
    1
    """
    if Matcher(pattern).free:
        return 1
    return math.inf if pattern.selection is Selection.ANY else _ways(pattern.node)


def _ways(node: Node) -> float:
    match node:
        case Sequence(parts):
            return math.prod(map(_ways, parts))
        case Choice(parts):
            return sum(map(_ways, parts))
        case Permute(parts):
            return math.factorial(len(parts)) * _ways(Sequence(parts))
        case Exclude(part):
            return _ways(part)
        case Repeat(part, least, most):
            return _repeated(part, least, most)
        case _:
            return 1


def _repeated(part: Node, least: int, most: int | None) -> float:
    if most is None:
        return 1 if one_way(part) else math.inf
    each = _ways(part)
    if each == 1:
        return most - least + 1
    return math.inf if most * math.log2(each) > 64 else sum(each**n for n in range(least, most + 1))
