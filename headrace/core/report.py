"""How a run tells whoever started it what happens: a kind and its fields. The command line prints
them; tests/run/process.py waits for them.
"""

from __future__ import annotations

from collections.abc import Callable

Report = Callable[[str, dict[str, object]], None]
