"""`headrace backup` and `headrace restore`. tests/run/test_backup.py runs both."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from headrace.cli.folder import kept_here
from headrace.cli.report import Report, good, waiting
from headrace.client.words import counted, moment, size

if TYPE_CHECKING:
    from headrace.run.backup import Manifest


def backup(folder: Path, target: Path) -> Report:
    """Copy all that a project keeps into a new folder."""
    from headrace.run.backup import backup

    layout, name = kept_here(folder)
    with waiting("copying, and reading the copy back"):
        manifest = backup(layout, name, target)
    return _report("backed up to", target, manifest)


def restore(folder: Path, source: Path) -> Report:
    """Make a backup the state of a project that has none."""
    from headrace.run.backup import restore

    layout, _ = kept_here(folder, empty=True)
    with waiting("copying"):
        manifest = restore(layout, source)
    return _report("restored from", source, manifest)


def _report(done: str, place: Path, manifest: Manifest) -> Report:
    document = {
        "folder": str(place),
        "project": manifest.project,
        "made_at": manifest.made_at,
        "files": len(manifest.files),
        "bytes": manifest.bytes,
    }
    told = f"{manifest.project} as of {moment(manifest.made_at)}: "
    told += f"{counted(len(manifest.files), 'file')}, {size(manifest.bytes)}, "
    return Report(document, [Text(told).append(good(f"{done} {place}"))])
