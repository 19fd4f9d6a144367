"""`headrace rebuild`, `audit`, `verify` and `dead-letters`: looking after what is kept.

An audit that finds a difference exits with 1, so that a script notices. A rebuild that finds one
has put it right, so it exits with 0 and says how many there were.
tests/cli/test_upkeep.py reads each page.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich.console import RenderableType
from rich.text import Text

from headrace.api.service import DeadLetter
from headrace.cli.folder import asked, kept_here, named_job
from headrace.cli.rebuilding import rebuilt
from headrace.cli.report import Report, bad, dim, good, waiting
from headrace.client.table import table
from headrace.client.words import counted, moment, size
from headrace.core.errors import BadRequest
from headrace.serving.store import AuditResult

if TYPE_CHECKING:
    from headrace.run.verify import Verified


def rebuild(folder: Path, view: str, *, quiet: bool) -> Report:
    """Recompute a view and say what became of it."""
    with asked(folder) as service:
        result = rebuilt(service, view, quiet=quiet)
    line = f"{result.view}: generation {result.generation}, {counted(result.rows, 'row')}, "
    found = counted(result.differences or 0, "difference") + " from what was served before"
    return Report(result, [Text(line).append(bad(found) if result.differences else good(found))])


def audit(folder: Path, view: str | None) -> Report:
    """Compare answers with those of a second engine."""
    with asked(folder) as service, waiting("comparing with a second engine"):
        results = service.audit(view)
    ok = not any(result.differences for result in results)
    return Report({"ok": ok, "audits": results}, _audited(results), 0 if ok else 1)


def _audited(results: list[AuditResult]) -> list[RenderableType]:
    rows: list[list[str | Text]] = [
        [r.view, f"{r.compared:,}", _differences(r.differences), dim(r.note)] for r in results
    ]
    examples = [Text(f"  {r.view}: {example}") for r in results for example in r.examples]
    if not rows:
        return [dim("there is nothing to compare yet")]
    heads = ("view", "compared", "differences", "note")
    return [table(*heads, rows=rows, right=heads[1:3]), *examples]


def _differences(many: int) -> Text:
    return bad(f"{many:,}") if many else good("0")


def verify(folder: Path, mend: bool) -> Report:
    """Read all that is kept, and say what of it is damaged."""
    from headrace.run.verify import verify

    layout, _ = kept_here(folder)
    if mend and (job := named_job()):
        raise BadRequest(
            f"'{job}' is a job of a server, and its files are not repaired from here",
            hint="put them into a folder with its project, and repair them there.",
        )
    with waiting("reading the log and the master"):
        result = verify(layout, mend=mend)
    document = {"ok": result.sound, **msgspec.to_builtins(result)}
    return Report(document, _verified(result), 0 if result.sound else 1)


def _verified(result: Verified) -> list[RenderableType]:
    read = f"{counted(result.log_events, 'event')} of the log ({size(result.log_bytes)}), "
    read += f"{counted(result.master_records, 'record')} of the master in "
    read += f"{counted(result.master_files, 'file')} ({size(result.master_bytes)}): "
    if not result.damages:
        return [Text(read).append(good("all sound"))]
    told = counted(len(result.damages), "file")
    parts: list[RenderableType] = [Text(read).append(bad(f"{told} damaged"))]
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
    with asked(folder) as service:
        found = service.dead_letters(stream, limit)
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
            moment(letter.arrived_at),
            letter.reason,
            letter.raw,
        ]
        for letter in letters
    ]
    heads = ("partition", "offset", "arrived", "reason", "raw")
    return table(*heads, rows=rows, right=heads[:2])
