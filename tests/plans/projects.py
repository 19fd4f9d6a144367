"""Projects of one SQL file, read and compiled as a folder's would be."""

from __future__ import annotations

from pathlib import Path

from headrace.compile.analyser import Analyser
from headrace.compile.passes import compile_project
from headrace.compile.plan import Plan
from headrace.core.origin import Origin
from headrace.define.project import load_project

HERE = Path(__file__).parent


class Unasked:
    """The analyser of a project that is refused before Spark is asked anything."""

    def relation(self, name: str, ddl: str) -> None:
        """Making a relation known is no question."""

    def analyse(self, sql: str, origin: Origin, name: str | None = None) -> list[tuple[str, str]]:
        raise AssertionError(f"Spark was asked about: {sql}")

    def equal(self, sql: str) -> bool:
        raise AssertionError(f"Spark was asked about: {sql}")


def compile_text(folder: Path, text: str, analyser: Analyser) -> Plan:
    """The plan of a project whose only SQL file, shop.sql, is `text`."""
    (folder / "headrace.toml").write_text('name = "shop"\n')
    (folder / "shop.sql").write_text(text, "utf-8")
    return compile_project(load_project(folder), analyser)
