"""Types that several threads read are learned in one, when their module is imported.

msgspec learns what a type has in it when it first reads one, and two threads that do so at the same
time can end the process with a segmentation fault. tests/core/test_learned.py has eight of them
begin at once.
"""

from __future__ import annotations

from typing import Any

import msgspec


def learn(*types: Any) -> None:
    """Have msgspec know these types, and all that is in them, from now on."""
    for one in types:
        msgspec.json.Decoder(one)
