"""`headrace rebuild`, `audit`, `verify`, `dead-letters`, `backup`, `restore` and `export`:
maintenance of the stored data.

An audit that finds a difference exits with 1, so that a script notices. A rebuild that finds one
has corrected it, so it exits with 0 and shows how many there were.
tests/cli/test_maintenance.py and tests/cli/test_exporting.py read the pages.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich.console import RenderableType
from rich.text import Text

from headrace.api.resources.dead_letters import DeadLetter, DeadLettersRequest
from headrace.cli.folder import local_state, named_job, open_service
from headrace.cli.rebuilding import rebuild_with_progress
from headrace.cli.report import Report, bad, dim, good, spinner
from headrace.client.formats import plural, size, timestamp
from headrace.client.table import table
from headrace.core.errors import BadRequest
from headrace.serving.store import AuditResult

if TYPE_CHECKING:
    from headrace.run.backup import Manifest
    from headrace.run.verify import VerifyResult


def rebuild(folder: Path, view: str, *, quiet: bool) -> Report:
    """Recompute a view and show the result."""
    with open_service(folder) as service:
        result = rebuild_with_progress(service, view, quiet=quiet)
    line = f"{result.view}: generation {result.generation}, {plural(result.rows, 'row')}, "
    return Report(result, [Text(line).append(_rebuilt(result.differences))])


def _rebuilt(differences: int | None) -> Text:
    if differences is None:
        return dim("not compared with what was served before")
    found = plural(differences, "difference") + " from what was served before"
    return bad(found) if differences else good(found)


def audit(folder: Path, view: str | None) -> Report:
    """Compare answers with those of a second engine."""
    with open_service(folder) as service, spinner("comparing with a second engine"):
        results = service.audit(view)
    ok = not any(result.differences for result in results)
    return Report({"ok": ok, "audits": results}, _audited(results), 0 if ok else 1)


def _audited(results: list[AuditResult]) -> list[RenderableType]:
    rows: list[list[str | Text]] = [
        [r.view, f"{r.compared:,}", _differences(r), dim(r.note)] for r in results
    ]
    examples = [Text(f"  {r.view}: {example}") for r in results for example in r.examples]
    if not rows:
        return [dim("nothing to compare yet")]
    heads = ("view", "compared", "differences", "note")
    return [table(*heads, rows=rows, right=heads[1:3]), *examples]


def _differences(result: AuditResult) -> Text:
    if result.changed is None:
        return dim("–")
    return bad(f"{result.differences:,}") if result.differences else good("0")


def verify(folder: Path, repair: bool) -> Report:
    """Read all stored files, and show which are damaged."""
    from headrace.run.verify import verify

    layout, _ = local_state(folder)
    if repair and (job := named_job()):
        raise BadRequest(
            f"the files of job '{job}' cannot be repaired in place: it belongs to a server",
            hint="copy them into a folder with its project, and repair them there.",
        )
    with spinner("reading the log and the master"):
        result = verify(layout, repair=repair)
    document = {"ok": result.sound, **msgspec.to_builtins(result)}
    return Report(document, _verified(result), 0 if result.sound else 1)


def _verified(result: VerifyResult) -> list[RenderableType]:
    read = f"{plural(result.log_events, 'event')} of the log ({size(result.log_bytes)}), "
    read += f"{plural(result.master_records, 'record')} of the master in "
    read += f"{plural(result.master_files, 'file')} ({size(result.master_bytes)}): "
    if not result.damages:
        return [Text(read).append(good("no damage"))]
    damaged = plural(len(result.damages), "file")
    parts: list[RenderableType] = [Text(read).append(bad(f"{damaged} damaged"))]
    for damage in result.damages:
        parts.append(
            (good("repaired ") if damage.repaired else bad("damaged ")).append(damage.path)
        )
        if damage.offsets:
            lower, upper = damage.offsets
            place = f"partition {damage.partition}, offsets [{lower}, {upper})"
            parts.append(Text(f"  {damage.stream}: {place}"))
        parts.append(Text(f"  {damage.problem}"))
    return parts


def dead_letters(folder: Path, stream: str, limit: int) -> Report:
    """The newest events of a stream that could not be read."""
    with open_service(folder) as service:
        found = service.ask(DeadLettersRequest(stream, limit))
    letters = found.dead_letters
    document = {"stream": stream, "dead_letters": letters, "total": found.total}
    if not letters:
        return Report(document, [dim(f"{stream} has no dead letters")])
    cut = found.total > len(letters)
    more = [dim(f"the newest {len(letters):,} of {found.total:,}")] if cut else []
    return Report(document, [_letters(letters), *more])


def _letters(letters: list[DeadLetter]) -> RenderableType:
    rows = [
        [
            f"{letter.partition}",
            f"{letter.offset}",
            timestamp(letter.arrived_at),
            letter.reason,
            letter.raw,
        ]
        for letter in letters
    ]
    heads = ("partition", "offset", "arrived", "reason", "raw")
    return table(*heads, rows=rows, right=heads[:2])


def backup(folder: Path, target: Path) -> Report:
    """Copy the state of a project into a new folder."""
    from headrace.run.backup import backup

    layout, name = local_state(folder)
    with spinner("copying, and reading the copy back"):
        manifest = backup(layout, name, target)
    return _copied("backed up to", target, manifest)


def restore(folder: Path, source: Path) -> Report:
    """Make a backup the state of a project that has none."""
    from headrace.run.backup import restore

    layout, _ = local_state(folder, empty=True)
    with spinner("copying"):
        manifest = restore(layout, source)
    return _copied("restored from", source, manifest)


def _copied(done: str, place: Path, manifest: Manifest) -> Report:
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


def export(folder: Path, view: str, path: Path) -> Report:
    """Write a view's rows into a new file."""
    from headrace.serving.export import export_view
    from headrace.serving.opening import open_database

    layout, _ = local_state(folder)
    with closing(open_database(layout.store)) as db:
        rows = export_view(db, view, path)
    document = {"view": view, "file": str(path), "rows": rows}
    return Report(document, [f"wrote {plural(rows, 'row')} of {view} to {path}"])
