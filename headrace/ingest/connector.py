"""The connectors: sources of events beside HTTP, which every stream has.

A connector is made for a stream that names it as its source, and runs in a thread of its own until
it is stopped. Its options are checked when a project is planned, and checking opens nothing.
tests/ingest/test_connector.py checks the table and each refusal.
"""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Protocol

from headrace.core.errors import BadDefinition
from headrace.core.problems import Problems
from headrace.core.time import now_us
from headrace.define.definitions import StreamDefinition
from headrace.ingest.fields import field_reader
from headrace.ingest.files import FileConnector, FilesOptions, read_files_options
from headrace.ingest.generator import GeneratorConnector
from headrace.ingest.generator_options import GeneratorOptions, read_generator_options
from headrace.ingest.intake import Intake
from headrace.ingest.options import documented, read_options
from headrace.ingest.tcp import TcpConnector, TcpOptions


class Connector(Protocol):
    """Brings events from one source into one intake."""

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set; return earlier only when there is nothing more to do."""


# (definition, intake, project folder, problems of sources) -> connector
MakeConnector = Callable[[StreamDefinition, Intake, Path, Problems], Connector]


@dataclass(frozen=True, slots=True)
class NoOptions:
    """HTTP is always available and has no options."""


@dataclass(frozen=True, slots=True)
class SourceKind:
    """What a stream may name as its source. HTTP needs no connector."""

    options: type[Any]
    read: Callable[[StreamDefinition], object]
    connect: MakeConnector | None = None
    column_options: tuple[tuple[str, str | None, str], ...] = ()


def _tcp(
    definition: StreamDefinition, intake: Intake, project: Path, problems: Problems
) -> Connector:
    return TcpConnector(definition, intake, problems)


def _generator(
    definition: StreamDefinition, intake: Intake, project: Path, problems: Problems
) -> Connector:
    rng = Random(read_generator_options(definition).seed)
    return GeneratorConnector(definition, intake, rng=rng, clock=now_us)


_COLUMN_OPTIONS = (
    ("<column>.values", None, "comma-separated values of a column, the most frequent first"),
    ("<column>.cardinality", "50", "number of distinct values of a column"),
)
SOURCES = {
    "http": SourceKind(NoOptions, lambda definition: read_options(definition, NoOptions)),
    "tcp": SourceKind(TcpOptions, lambda definition: read_options(definition, TcpOptions), _tcp),
    "files": SourceKind(FilesOptions, read_files_options, FileConnector),
    "generator": SourceKind(GeneratorOptions, read_generator_options, _generator, _COLUMN_OPTIONS),
}


def documented_options(source: str) -> tuple[tuple[str, str | None, str], ...]:
    """Each option of a source as (name, default, meaning); one without a default is required
    or, for a column, means that values are made up.
    """
    kind = SOURCES[source]
    return (*documented(kind.options), *kind.column_options)


def check_options(definition: StreamDefinition) -> None:
    """Refuse a source, an option or a value that the stream cannot have; opens nothing."""
    if definition.source not in SOURCES:
        close = difflib.get_close_matches(definition.source, SOURCES, 1)
        known = f"available sources: {', '.join(SOURCES)}."
        raise BadDefinition(
            f"stream '{definition.name}' has an unknown source: '{definition.source}'",
            hint=f"did you mean '{close[0]}'? {known}" if close else known,
            origin=definition.origin,
        )
    SOURCES[definition.source].read(definition)
    field_reader(definition)
