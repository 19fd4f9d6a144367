"""`headrace export`: all rows of a view in a file for other tools, also of a stopped project.

tests/cli/test_exporting.py writes and reads each kind of file.
"""

from __future__ import annotations

from pathlib import Path

from headrace.cli.folder import kept_here
from headrace.cli.report import Report
from headrace.client.words import counted


def export(folder: Path, view: str, path: Path) -> Report:
    """Write a view's rows into a new file."""
    from headrace.serving.export import export_view
    from headrace.serving.sqlite import Sqlite

    layout, _ = kept_here(folder)
    db = Sqlite(layout.store)
    try:
        rows = export_view(db, view, path)
    finally:
        db.close()
    said = {"view": view, "file": str(path), "rows": rows}
    return Report(said, [f"wrote {counted(rows, 'row')} of {view} to {path}"])
