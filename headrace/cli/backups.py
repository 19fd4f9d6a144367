"""`headrace backup` and `headrace restore`. tests/run/test_backup.py runs both."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from headrace.cli.folder import local_state
from headrace.cli.report import Report, good, spinner
from headrace.client.formats import plural, size, timestamp

if TYPE_CHECKING:
    from headrace.run.backup import Manifest


def backup(folder: Path, target: Path) -> Report:
    """Copy the state of a project into a new folder."""
    from headrace.run.backup import backup

    layout, name = local_state(folder)
    with spinner("copying, and reading the copy back"):
        manifest = backup(layout, name, target)
    return _report("backed up to", target, manifest)


def restore(folder: Path, source: Path) -> Report:
    """Make a backup the state of a project that has none."""
    from headrace.run.backup import restore

    layout, _ = local_state(folder, empty=True)
    with spinner("copying"):
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
    summary = f"{manifest.project} as of {timestamp(manifest.made_at)}: "
    summary += f"{plural(len(manifest.files), 'file')}, {size(manifest.bytes)}, "
    return Report(document, [Text(summary).append(good(f"{done} {place}"))])
