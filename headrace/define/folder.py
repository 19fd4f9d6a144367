"""Finds the project folder.

A folder that was given is taken as it is. Otherwise it is the current folder or the nearest above
it that has a headrace.toml, and otherwise the current folder, for which a missing headrace.toml is
reported. tests/define/test_folder.py checks the order.
"""

from __future__ import annotations

from pathlib import Path


def find_project_folder(given: Path | None) -> Path:
    """The project folder of a command or client."""
    if given is not None:
        return given
    here = Path.cwd()
    return next((f for f in (here, *here.parents) if (f / "headrace.toml").is_file()), here)
