"""Rules that were added while a project ran are part of it from then on.

They are kept in the store with their text. A name is a rule's in the files or a kept one's, never
both. tests/run/test_rulebook.py checks it.
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.core.errors import BadDefinition
from headrace.define.definitions import RuleDefinition
from headrace.define.layout import Layout
from headrace.define.project import Project, duplicate_definitions
from headrace.run.added import read_kind
from headrace.serving.rules import RuleVersion, newest_versions
from headrace.serving.sqlite_store import SqliteStore


def kept_rules(store: SqliteStore) -> dict[str, RuleDefinition]:
    """The rules that the store keeps, by name."""
    with store.read() as db:
        kept = [rule for rule in newest_versions(db).values() if rule.kept]
    return {rule.name: read_kept(rule) for rule in kept}


def read_kept(rule: RuleVersion) -> RuleDefinition:
    """A rule of the store, with what its text says."""
    (said,) = read_kind(rule.text, f"rule {rule.name}", RuleDefinition)
    return said


def whole_project(project: Project) -> Project:
    """The project of the files with the rules and watches that its store keeps."""
    from headrace.run.watches import with_watches

    path = Layout.of(project).store
    if not path.is_file():
        return project
    store = SqliteStore(path)
    try:
        return with_watches(with_rules(project, kept_rules(store).values()), store)
    finally:
        store.close()


def with_rules(project: Project, rules: Iterable[RuleDefinition]) -> Project:
    """The project of the files with these rules too."""
    rules = tuple(rules)
    said = {definition.name.lower(): definition for definition in project.definitions}
    for rule in rules:
        if (other := said.get(rule.name.lower())) is not None:
            raise BadDefinition(
                f"'{rule.name}' is defined in the project's files and is also a rule that was "
                "added while it ran",
                detail=f"the files' definition is at {other.origin}.",
                hint="give one another name; `headrace rule remove` works once the files lack it.",
                origin=rule.origin,
            )
    for mistake in duplicate_definitions(rules):
        raise mistake
    return project.with_added(rules)
