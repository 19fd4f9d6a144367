"""The project of the files together with the rules and watches that were added at run time.

The store has their texts. A name is defined either in the files or in the store, never in both.
tests/run/test_rule_service.py and tests/run/test_watch_service.py check it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

from headrace.core.errors import BadDefinition
from headrace.define.definitions import RuleDefinition, WatchDefinition
from headrace.define.layout import Layout
from headrace.define.project import Project, duplicate_definitions
from headrace.run.definition_text import parse_kind
from headrace.serving import watches
from headrace.serving.database_store import DatabaseStore
from headrace.serving.opening import open_store, store_exists
from headrace.serving.rules import RuleVersion, newest_versions


def added_rules(store: DatabaseStore) -> dict[str, RuleDefinition]:
    """The rules that were added at run time, by name."""
    with store.read() as db:
        stored = [rule for rule in newest_versions(db).values() if rule.kept]
    return {rule.name: parse_rule(rule) for rule in stored}


def parse_rule(rule: RuleVersion) -> RuleDefinition:
    """The definition of a stored rule."""
    (definition,) = parse_kind(rule.text, f"rule {rule.name}", RuleDefinition)
    return definition


def effective_project(project: Project) -> Project:
    """The project of the files with the rules and watches of its store."""
    address = Layout.of(project).store
    if not store_exists(address):
        return project
    with closing(open_store(address)) as store:
        return with_watches(with_rules(project, added_rules(store).values()), store)


def with_rules(project: Project, rules: Iterable[RuleDefinition]) -> Project:
    """The project of the files with these rules."""
    rules = tuple(rules)
    defined = {definition.name.lower(): definition for definition in project.definitions}
    for rule in rules:
        if (other := defined.get(rule.name.lower())) is not None:
            raise BadDefinition(
                f"duplicate name '{rule.name}': it is defined in the project's files, and a rule "
                "of that name was added at run time",
                detail=f"the definition in the files is at {other.origin}.",
                hint=f"rename the one in the files, or run `headrace rule remove {rule.name}`.",
                origin=rule.origin,
            )
    for mistake in duplicate_definitions(rules):
        raise mistake
    return project.with_added(rules)


def with_watches(
    project: Project, store: DatabaseStore, more: tuple[WatchDefinition, ...] = ()
) -> Project:
    """The project with one stored watch of each shape, and with `more`: the plan depends on the
    shapes only.
    """
    with store.read() as db:
        texts, names = watches.kept_shapes(db), watches.kept_names(db)
    defined = {d.name.lower(): d for d in project.definitions}
    for name in (*names, *(watch.name for watch in more)):
        if (other := defined.get(name.lower())) is not None:
            raise BadDefinition(
                f"duplicate name '{name}': it is defined in the project's files, and a watch of "
                "that name was added at run time",
                detail=f"the definition in the files is at {other.origin}.",
                hint=f"rename the one in the files, or run `headrace watch remove {name}`.",
            )
    stored = [parse_kind(t, f"watch {shape}", WatchDefinition)[0] for shape, t in texts.items()]
    new = {watch.name.lower() for watch in more}
    return project.with_added(
        (*(watch for watch in stored if watch.name.lower() not in new), *more)
    )
