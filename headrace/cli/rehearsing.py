"""`headrace rules test`: the decisions of rules on past events, before they are deployed.

The counts come first, then the differences from the deployed version, then sample events with the
rule that matched. tests/cli/test_rehearsing.py reads a whole page.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from headrace.cli.folder import load, name_hint
from headrace.cli.report import Report, dim, good, spinner
from headrace.client.formats import cell, plural, timestamp
from headrace.client.table import table
from headrace.core.errors import BadRequest, NotFound
from headrace.core.time import from_iso
from headrace.define.project import Project
from headrace.run.rehearsal import Comparison, Rehearsal


def test(folder: Path, name: str, since: str | None, limit: int) -> Report:
    """Run the rules of the project's files on its history."""
    from headrace.run.rehearsal import rehearse

    project = load(folder)
    known = _known(project, name)
    since_us = _timestamp(since)
    with spinner("testing the rules"):
        found = rehearse(project, known, since_us, limit)
    return Report(found, render(found))


def _known(project: Project, name: str) -> str:
    known = [query.name for query in project.queries.values() if query.rules]
    found = next((each for each in known if each.lower() == name.lower()), None)
    if found is None:
        raise NotFound(f"there are no rules named '{name}'", hint=name_hint(name, known))
    return found


def _timestamp(text: str | None) -> int | None:
    try:
        return None if text is None else from_iso(text)
    except ValueError as error:
        raise BadRequest(
            f"'{text}' is not a valid timestamp such as 2026-11-15T19:00:00Z",
            hint="--since 2026-11-15",
        ) from error


def render(found: Rehearsal) -> list[RenderableType]:
    since = f" since {timestamp(found.since)} UTC" if found.since else ""
    head = f"{found.rules} on {found.stream}: {plural(found.events, 'event')}{since}"
    more = found.results - found.events
    several = f", {more:,} additional results because some events match several rows of a table"
    parts: list[RenderableType] = [Text(head + (several if more else "")), "", _decided(found)]
    parts += ["", *_compared(found.deployed, found.events)]
    if found.samples:
        parts += ["", _samples(found)]
    return parts


def _decided(found: Rehearsal) -> RenderableType:
    rows = [*found.decided.items(), *([("no rule", found.undecided)] if found.undecided else [])]
    cells = [[name, f"{many:,}", _share(many, found.results)] for name, many in rows]
    return table("rule", "results", "share", rows=cells, right=("results", "share"))


def _share(many: int, all: int) -> str:
    return f"{many / all:.1%}" if all else ""


def _compared(found: Comparison | None, events: int) -> list[RenderableType]:
    if found is None:
        return [dim("nothing to compare with: no stream of this name is deployed")]
    lines: list[RenderableType] = []
    if found.differ:
        many = f"{found.differ:,} of {plural(events, 'event')} would have different results"
        lines.append(Text(f"{many} than deployed", style="yellow"))
        lines += [Text(f"  {name}: {plural(n, 'event')}") for name, n in found.fields.items()]
    else:
        lines.append(good("no event would have different results than deployed"))
    lines += [Text(f"  {name}: a new field") for name in found.new_fields]
    lines += [Text(f"  {name}: a removed field") for name in found.gone_fields]
    if found.only_now:
        lines.append(Text(f"  {plural(found.only_now, 'event')} only with these rules"))
    if found.only_deployed:
        lines.append(Text(f"  {plural(found.only_deployed, 'event')} only as deployed"))
    return lines


def _samples(found: Rehearsal) -> RenderableType:
    rows = [[cell(value, "") for value in row.values()] for row in found.samples]
    return table(*found.samples[0], rows=rows, title="samples")
