"""`headrace rebuild`, `audit` and `dead-letters`: looking after what is kept.

An audit that finds a difference exits with 1, so that a script notices. A rebuild that finds one
has put it right, so it exits with 0 and says how many there were.
tests/cli/test_upkeep.py reads each page.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from headrace.api.service import DeadLetter
from headrace.cli.folder import asked
from headrace.cli.report import Report, bad, dim, good, waiting
from headrace.client.table import table
from headrace.client.words import counted, moment
from headrace.serving.store import AuditResult


def rebuild(folder: Path, view: str) -> Report:
    """Recompute a view and say what became of it."""
    with asked(folder) as service, waiting(f"rebuilding {view}"):
        result = service.rebuild(view)
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


def dead_letters(folder: Path, stream: str, limit: int) -> Report:
    """The newest events of a stream that could not be read."""
    with asked(folder) as service:
        letters = service.dead_letters(stream, limit)
    document = {"stream": stream, "dead_letters": letters}
    return Report(
        document, [_letters(letters) if letters else dim(f"{stream} has no dead letters")]
    )


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
