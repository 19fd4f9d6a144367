"""msgspec builds its description of a type in one thread, when the module is imported.

It would otherwise do so at the first decode, and two threads that do so at the same time can end
the process with a segmentation fault. tests/core/test_msgspec_types.py starts eight at once.
"""

from __future__ import annotations

from typing import Any

import msgspec


def prepare_types(*types: Any) -> None:
    """Have msgspec describe these types, and all that they contain, now."""
    for one in types:
        msgspec.json.Decoder(one)
