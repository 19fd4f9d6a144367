"""Which files of a folder another user of the machine could read."""

from __future__ import annotations

from pathlib import Path

OTHERS = 0o077


def readable_by_others(folder: Path) -> list[str]:
    """The folder and what is in it, as far as others have any right to it."""
    found = (folder, *folder.rglob("*"))
    return [f"{path.lstat().st_mode:o} {path}" for path in found if _open(path)]


def _open(path: Path) -> bool:
    return not path.is_symlink() and bool(path.lstat().st_mode & OTHERS)
