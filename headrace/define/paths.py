"""Checks the paths that definitions read and write.

A definition reads inside the project's folder and writes inside its output folder, also where links
lead; nothing that a project reads lies in what it writes. So no definition, whoever added it,
creates a file that the next start reads: definitions, functions.py, lookups, settings, sources,
state. tests/define/test_paths.py tries each way to escape.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from headrace.core.errors import BadDefinition, BadSetting, HeadraceError
from headrace.core.origin import Origin
from headrace.define.definitions import StreamDefinition, TableDefinition

if TYPE_CHECKING:  # a project is read with this page
    from headrace.define.project import Project

TARGET_MAX = 200
_GLOB = frozenset("*?[")


def output_file(project: Project, target: str, what: str, origin: Origin | None = None) -> Path:
    """The file that a definition writes; BadDefinition if it is not of the output folder."""
    output = project.output
    path = (output / target).resolve() if _plain(target) else output
    if path == output or not path.is_relative_to(output) or target.endswith("/"):
        raise BadDefinition(
            f"{what} writes to '{target[:100]}', which is not in the project's output folder",
            hint=f"the path is relative to {project.settings.output}/, such as 'alerts.ndjson'.",
            origin=origin,
        )
    return path


def _plain(target: str) -> bool:
    return 0 < len(target) <= TARGET_MAX and target.isprintable() and "\\" not in target


def input_file(folder: Path, location: str, what: str, origin: Origin) -> Path:
    """The file or folder that a definition reads; BadDefinition if it is not of the project."""
    path = (folder / location).resolve() if location.isprintable() else None
    if path is None or not path.is_relative_to(folder.resolve()):
        raise BadDefinition(
            f"{what} reads '{location[:100]}', which is outside the project's folder",
            hint="the path is relative to that folder, such as 'lookups/pages.csv'.",
            origin=origin,
        )
    return path


def path_mistakes(project: Project) -> Iterator[HeadraceError]:
    """Errors of the folders of a project, and of the paths that its definitions read."""
    if mistake := _output_mistake(project):
        yield mistake
        return
    for definition in project.definitions:
        try:
            if isinstance(definition, TableDefinition):
                _check_table(project, definition)
            elif isinstance(definition, StreamDefinition):
                _check_source(project, definition)
        except HeadraceError as error:
            yield error


def _output_mistake(project: Project) -> BadSetting | None:
    folder, output, state = project.folder.resolve(), project.output, project.state
    inside = output.is_relative_to(folder) and output != folder
    if inside and not output.is_relative_to(state) and not state.is_relative_to(output):
        return None
    return BadSetting(
        "output must be a folder inside the project and outside its state folder, not "
        f"'{project.settings.output}'",
        hint='write output = "out" in headrace.toml.',
        origin=Origin("headrace.toml", 1),
    )


def _check_table(project: Project, table: TableDefinition) -> None:
    what = f"table '{table.name}'"
    path = input_file(project.folder, table.location, what, table.origin)
    _refuse_own(project, path, f"{what} reads '{table.location}'", table.origin)


def _check_source(project: Project, stream: StreamDefinition) -> None:
    """The part of a pattern before its first wildcard; the connector checks each file again."""
    if stream.source != "files":
        return
    parts = PurePosixPath(stream.options.get("path", "")).parts
    fixed = parts[: next((n for n, part in enumerate(parts) if _GLOB & set(part)), len(parts))]
    what, location = f"stream '{stream.name}'", str(PurePosixPath(*fixed))
    path = input_file(project.folder, location, what, stream.origin)
    _refuse_own(project, path, f"{what} reads '{location}'", stream.origin)


def _refuse_own(project: Project, path: Path, said: str, origin: Origin) -> None:
    for own, name in ((project.output, "output"), (project.state, "state")):
        if path.is_relative_to(own):
            raise BadDefinition(
                f"{said}, which is in the project's {name} folder",
                hint="move it elsewhere: a project cannot read the files that it writes.",
                origin=origin,
            )
