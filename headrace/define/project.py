"""A project is a folder: headrace.toml, .sql files with definitions and the decision tables that
they name, and .py files with functions.

Reading a project changes nothing. Files are read in the order of their names; the order of
definitions does not matter. tests/define/test_project.py checks what is found and what is
refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from headrace.core.errors import BadDefinition, BadProject, HeadraceError
from headrace.core.origin import Origin
from headrace.define.definitions import (
    Definition,
    QueryDefinition,
    RuleDefinition,
    SinkDefinition,
    StreamDefinition,
    TableDefinition,
    WatchDefinition,
)
from headrace.define.paths import path_mistakes
from headrace.define.settings import Settings, load_settings
from headrace.define.statements import read_valid_statements


@dataclass(frozen=True, slots=True)
class Project:
    """The definitions of a folder, and the rules and watches that were added while it ran."""

    folder: Path
    settings: Settings
    definitions: tuple[Definition, ...]
    added: frozenset[str] = frozenset()  # names of definitions that are not of the files

    @property
    def state(self) -> Path:
        return (self.folder / self.settings.state).resolve()

    @property
    def output(self) -> Path:
        return (self.folder / self.settings.output).resolve()

    @property
    def streams(self) -> dict[str, StreamDefinition]:
        return {d.name: d for d in self.definitions if isinstance(d, StreamDefinition)}

    @property
    def tables(self) -> dict[str, TableDefinition]:
        return {d.name: d for d in self.definitions if isinstance(d, TableDefinition)}

    @property
    def queries(self) -> dict[str, QueryDefinition]:
        return {d.name: d for d in self.definitions if isinstance(d, QueryDefinition)}

    @property
    def sinks(self) -> dict[str, SinkDefinition]:
        return {d.name: d for d in self.definitions if isinstance(d, SinkDefinition)}

    @property
    def rules(self) -> dict[str, RuleDefinition]:
        return {d.name: d for d in self.definitions if isinstance(d, RuleDefinition)}

    @property
    def watches(self) -> dict[str, WatchDefinition]:
        return {d.name: d for d in self.definitions if isinstance(d, WatchDefinition)}

    def with_added(self, definitions: Sequence[Definition]) -> Project:
        """The project with definitions that are not of its files."""
        added = self.added | {definition.name for definition in definitions}
        return replace(self, definitions=(*self.definitions, *definitions), added=added)

    @property
    def functions_file(self) -> Path | None:
        path = self.folder / "functions.py"
        return path if path.is_file() else None


def load_project(folder: Path) -> Project:
    """Read a project folder; the first mistake is raised."""
    project, mistakes = read_project(folder)
    if mistakes:
        raise mistakes[0]
    return project


def read_project(folder: Path) -> tuple[Project, list[HeadraceError]]:
    """The valid definitions of a folder, and the errors of the others."""
    settings = load_settings(folder)
    definitions: list[Definition] = []
    mistakes: list[HeadraceError] = []
    for path in sorted(folder.glob("*.sql")):
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            mistakes.append(
                BadProject(f"{path.name} is not UTF-8 text", origin=Origin(path.name, 1))
            )
            continue
        found, wrong = read_valid_statements(text, path.name, folder)
        definitions += found
        mistakes += wrong
    project = Project(folder, settings, tuple(definitions))
    return project, [*mistakes, *duplicate_definitions(definitions), *path_mistakes(project)]


def duplicate_definitions(definitions: Sequence[Definition]) -> Iterator[HeadraceError]:
    """An error for each definition with a duplicate name."""
    seen: dict[str, Definition] = {}
    for definition in definitions:
        before = seen.setdefault(definition.name.lower(), definition)
        if before is not definition:
            yield BadDefinition(
                f"'{definition.name}' is defined twice",
                detail=f"the first definition is at {before.origin}.",
                hint="names must be unique in a project, regardless of case and kind.",
                origin=definition.origin,
            )
