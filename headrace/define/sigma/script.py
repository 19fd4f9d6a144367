"""Translates Sigma files to one file of SQL, with an error for each rule that is not supported.

    translated([("brute.yml", text)], stream="events").sql

Every document is a part of the SQL or of `errors`, except for rules that are only used in
correlations, for which Sigma wants no alerts. The same files in the same order make the same SQL,
and whatever is made was read by `read_statements`. tests/define/sigma/test_script.py checks this
with the files beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TypeVar

from headrace.core.errors import HeadraceError, Unsupported
from headrace.core.origin import Origin
from headrace.define.sigma.columns import FieldColumns
from headrace.define.sigma.documents import SigmaDocument, read_documents
from headrace.define.sigma.rules import (
    Correlation,
    EventRule,
    SigmaHeader,
    read_correlation,
    read_event_rule,
    references,
    title_of,
)
from headrace.define.sigma.statements import RuleWriter
from headrace.define.sigma.tree import leaves
from headrace.define.statements import read_statements

MADE_BY = "-- Made by `headrace sigma`"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SigmaScript:
    """The translation of Sigma files."""

    sql: str
    rules: tuple[str, ...]
    columns: dict[str, str]  # that the stream needs, with their types
    errors: tuple[HeadraceError, ...]


def translate(
    files: Iterable[tuple[str, str]],
    *,
    stream: str = "events",
    time: str = "ts",
    keywords_in: str | None = None,
) -> SigmaScript:
    """The SQL of files, each a path and its text."""
    work = _Work(RuleWriter(stream, time, FieldColumns()), keywords_in)
    paths = [work.read(path, text) for path, text in files]
    blocks = work.blocks()
    head = _head(paths, work.writer) if blocks else ""
    sql = "\n\n".join([head, *blocks]) + "\n" if blocks else ""
    errors = sorted(work.errors, key=lambda error: _order(error, paths))
    return SigmaScript(sql, tuple(work.made), _types(work.writer), tuple(errors))


def _order(error: HeadraceError, paths: list[str]) -> tuple[int, int]:
    assert isinstance(error.origin, Origin)
    return paths.index(error.origin.path), error.origin.line


@dataclass(slots=True)
class _Work:
    writer: RuleWriter
    keywords_in: str | None
    documents: list[SigmaDocument] = field(default_factory=list)
    rules: dict[str, EventRule] = field(default_factory=dict)  # by each name and id
    failed: set[str] = field(default_factory=set)
    made: list[str] = field(default_factory=list)
    errors: list[HeadraceError] = field(default_factory=list)

    def read(self, path: str, text: str) -> str:
        try:
            self.documents += read_documents(text, path)
        except HeadraceError as error:
            self.errors.append(error)
        return path

    def blocks(self) -> list[str]:
        """The commented statements of each rule, in the order of the files."""
        read = [(document, self.understood(document)) for document in self.documents]
        quiet = self.served(read)
        asked = [rule for _, rule in read if rule and not _served(rule, quiet)]
        # A failed rule must not leave a column behind, so the rest is written again from the start.
        sound = [rule for rule in asked if self.written([rule])]
        self.writer, self.made = self.fresh(), []
        return self.written(sound)

    def written(self, rules: list[EventRule | Correlation]) -> list[str]:
        # The columns' types come from all tests, so they are learned before any is written.
        named = {key for each in rules if isinstance(each, Correlation) for key in each.rules}
        base = [rule for rule in self.rules.values() if named & {*rule.about.keys}]
        for rule in [*rules, *base]:
            if isinstance(rule, EventRule):
                self.writer.columns.learn(leaves(rule.tree))
        return [block for rule in rules if (block := self.block(rule))]

    def fresh(self) -> RuleWriter:
        return RuleWriter(self.writer.stream, self.writer.time, FieldColumns())

    def understood(self, document: SigmaDocument) -> EventRule | Correlation | None:
        if "correlation" in document.fields:
            return self.tried(document, lambda: read_correlation(document))
        rule = self.tried(document, lambda: read_event_rule(document, self.keywords_in))
        keys = [str(document.fields[key]) for key in ("name", "id") if document.fields.get(key)]
        for key in keys:
            if key in self.rules or key in self.failed:
                self.errors.append(_refused(document, f"another rule is also called '{key}'"))
                return None
        self.rules |= dict.fromkeys(keys, rule) if rule else {}
        self.failed |= set() if rule else set(keys)
        return rule

    def served(self, read: list[tuple[SigmaDocument, EventRule | Correlation | None]]) -> set[str]:
        """Names of rules that are only used in correlations."""
        quiet = {key for document, _ in read for key in references(document)}
        loud = [r for _, r in read if isinstance(r, Correlation) and r.generate]
        return quiet - {key for rule in loud for key in rule.rules}

    def block(self, rule: EventRule | Correlation) -> str | None:
        writer = self.writer
        document = next(d for d in self.documents if d.origin == rule.about.origin)

        def write() -> tuple[str, list[str]]:
            if isinstance(rule, EventRule):
                return writer.event_rule(rule)
            return writer.correlation(rule, self.base(rule))

        found = self.tried(document, lambda: _readable(*write()))
        if found is None:
            return None
        self.made.append(found[0])
        return "\n".join([*_comment(rule.about), "\n\n".join(found[1])])

    def base(self, rule: Correlation) -> dict[str, EventRule]:
        """The rules of a correlation, by their references."""
        for key in rule.rules:
            if key in self.failed:
                raise ValueError(f"its rule '{key}' cannot be translated")
            if key in self.correlations():
                raise ValueError(f"its rule '{key}' is itself a correlation; this is not supported")
            if key not in self.rules:
                raise ValueError(f"it refers to rule '{key}', which is not in these files")
        return {key: self.rules[key] for key in rule.rules}

    def correlations(self) -> set[str]:
        found = [each.fields for each in self.documents if "correlation" in each.fields]
        return {str(fields[key]) for fields in found for key in ("name", "id") if key in fields}

    def tried(self, document: SigmaDocument, step: Callable[[], T]) -> T | None:
        try:
            return step()
        except ValueError as error:
            self.errors.append(_refused(document, str(error)))
        except HeadraceError as error:
            self.errors.append(_refused(document, error.message))
        return None


def _served(rule: EventRule | Correlation, quiet: set[str]) -> bool:
    return isinstance(rule, EventRule) and bool(quiet & set(rule.about.keys))


def _refused(document: SigmaDocument, reason: str) -> Unsupported:
    return Unsupported(
        f"Sigma rule '{title_of(document)}' is not translated: {reason}", origin=document.origin
    )


def _readable(name: str, statements: list[str]) -> tuple[str, list[str]]:
    """What was written, after it was read."""
    for statement in statements:
        read_statements(statement, "sigma")
    return name, statements


def _comment(about: SigmaHeader) -> list[str]:
    lines = [f"-- {about.title} ({_place(about.origin)})"]
    return [*lines, f"-- Log source: {about.logsource}."] if about.logsource else lines


def _place(origin: Origin) -> str:
    return f"{PurePath(origin.path).name}:{origin.line}"


def _types(writer: RuleWriter) -> dict[str, str]:
    names = sorted(writer.columns.types)
    found = {writer.columns.sql(name): writer.columns.type(name) for name in names}
    return {name: type for name, type in found.items() if name.lower() != writer.time.lower()}


def _head(paths: list[str], writer: RuleWriter) -> str:
    names = ", ".join(PurePath(path).name for path in paths)
    lines = [f"{MADE_BY} from {names}.", f"-- It needs a stream {writer.stream} with:"]
    lines.append(f"--   {writer.time} TIMESTAMP, its event time, with a WATERMARK")
    for name, type in _types(writer).items():
        spellings = [s for s in writer.columns.spellings[name.strip("`").lower()] if s != name]
        said = (
            f", in Sigma {', '.join(' '.join(s.split()) for s in spellings)}" if spellings else ""
        )
        lines.append(f"--   {name} {type}{said}")
    return "\n".join(lines)
