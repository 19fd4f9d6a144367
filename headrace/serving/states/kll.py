"""KLL sketches of doubles made by Spark, merged and read with the datasketches package.

The rank error of a quantile is less than 1.33 % with 99 % confidence; up to 200 values it is exact.
tests/serving/test_sketches.py checks both, and that Spark reads the same from what is merged here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction


def merge(sketches: Sequence[bytes]) -> bytes:
    """The merge of sketches."""
    from datasketches import kll_doubles_sketch

    merged = kll_doubles_sketch.deserialize(sketches[0])
    for sketch in sketches[1:]:
        merged.merge(kll_doubles_sketch.deserialize(sketch))
    return bytes(merged.serialize())


def quantile(sketch: bytes, p: float, inclusive: int) -> float | None:
    """The smallest value whose rank is at least `p`, or above `p` if that is not included."""
    from datasketches import kll_doubles_sketch

    found = kll_doubles_sketch.deserialize(sketch)
    if found.is_empty():
        return None
    # Computed with the decimal p as written: 0.07 * 100 is more than 7 in doubles.
    share = Fraction(str(p)) * found.n
    place = max(math.ceil(share), 1) if inclusive else math.floor(share) + 1
    return float(found.get_quantile((place - 0.5) / found.n, True))
