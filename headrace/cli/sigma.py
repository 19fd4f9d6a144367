"""`headrace sigma`: definitions created from files of other tools.

Rules that cannot be translated are reported on stderr, and the exit code is 1; the others are still
written. A file that this command did not create is never overwritten.
tests/cli/test_sigma.py reads the pages.
"""

from __future__ import annotations

from pathlib import Path

from headrace.cli.failure import show
from headrace.cli.report import Report, good, unwrapped
from headrace.cli.rules import read_text
from headrace.client.formats import plural
from headrace.core.errors import BadRequest
from headrace.define.sigma.script import MADE_BY, SigmaScript, translate


def sigma(
    files: list[Path], stream: str, time: str, keywords_in: str | None, output: Path | None
) -> Report:
    """The SQL of Sigma files."""
    for name in (stream, time, keywords_in or "x"):
        if not (name.isascii() and name.isidentifier()) or name.startswith("_"):
            raise BadRequest(
                f"'{name}' is not a valid name: use letters, digits and '_', a letter first"
            )
    texts = [(str(file), read_text(file, "utf-8-sig")) for file in dict.fromkeys(files)]
    script = translate(texts, stream=stream, time=time, keywords_in=keywords_in)
    if output is not None and script.sql:
        _write(output, script.sql)
    return _report(script, output)


def _report(script: SigmaScript, output: Path | None) -> Report:
    errors = [error.as_dict() for error in script.errors]
    document = {
        "ok": not errors,
        "rules": script.rules,
        "columns": script.columns,
        "sql": script.sql,
        "output": str(output) if output and script.sql else None,
        "errors": errors,
    }
    parts = [unwrapped(script.sql.rstrip("\n"))] if script.sql else []
    if output and script.sql:
        parts = [good(f"{output}: {plural(len(script.rules), 'rule')}")]
    return Report(document, parts, 1 if errors else 0)


def show_errors(report: Report) -> None:
    """Show on stderr what was not translated, so that stdout is SQL and nothing else."""
    for fields in report.document["errors"]:
        show(fields, json=False)


def _write(output: Path, sql: str) -> None:
    try:
        if output.exists() and not output.read_text("utf-8").startswith(MADE_BY):
            raise BadRequest(
                f"refusing to overwrite {output}: it was not created by this command",
                hint="give another file, or move that one away.",
            )
        output.write_text(sql, "utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"{output} cannot be written: {error}") from error
