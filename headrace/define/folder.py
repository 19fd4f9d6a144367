"""Which folder's project is meant.

A folder that was given is taken as it is. Otherwise it is the current folder or the nearest above
it that has a headrace.toml, and if there is none the current folder, whose lack of one is then the
error. tests/define/test_folder.py checks the order.
"""

from __future__ import annotations

from pathlib import Path


def found_folder(given: Path | None) -> Path:
    """The folder of the project that a command or a client is about."""
    if given is not None:
        return given
    here = Path.cwd()
    return next((f for f in (here, *here.parents) if (f / "headrace.toml").is_file()), here)
