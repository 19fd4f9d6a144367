"""Chance in tests: one seed decides everything that is drawn, and one switch how much.

The seed is printed at the end of each run; `HEADRACE_SEED=7 make test` draws the same again.
`HEADRACE_PROVE=1`, which `make prove` sets, asks each test for its exhaustive form.
"""

from __future__ import annotations

import os
import random

PROVE = os.environ.get("HEADRACE_PROVE") == "1"
# Workers inherit the environment, so all of them draw from the seed of the run.
SEED = int(os.environ.setdefault("HEADRACE_SEED", str(random.SystemRandom().randrange(2**32))))


def drawn(*about: object) -> random.Random:
    """Chance for one purpose, which no other draw can disturb."""
    return random.Random(f"{SEED} {about}")


def examples(few: int, many: int | None = None) -> int:
    """How many examples Hypothesis makes: ten times as many in `make prove`, if not said."""
    return (10 * few if many is None else many) if PROVE else few
