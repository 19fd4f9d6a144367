"""`headrace export`: write all rows of a view to a file for other tools, also if it is stopped.

tests/cli/test_exporting.py writes and reads each kind of file.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from headrace.cli.folder import local_state
from headrace.cli.report import Report
from headrace.client.formats import plural


def export(folder: Path, view: str, path: Path) -> Report:
    """Write a view's rows into a new file."""
    from headrace.serving.export import export_view
    from headrace.serving.sqlite import Sqlite

    layout, _ = local_state(folder)
    with closing(Sqlite(layout.store)) as db:
        rows = export_view(db, view, path)
    document = {"view": view, "file": str(path), "rows": rows}
    return Report(document, [f"wrote {plural(rows, 'row')} of {view} to {path}"])
