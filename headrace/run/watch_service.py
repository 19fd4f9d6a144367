"""The watches of a project, from its store.

A watch of a deployed shape is one more row of constants, which a running project loads between two
epochs. Only a new shape changes the plan, which the deployer deploys.
tests/run/test_watch_service.py checks each.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from headrace.access.caller import OWNER, Caller
from headrace.compile.destinations import refuse_cycles
from headrace.compile.plan import WatchPlan
from headrace.compile.watches import ShapedWatch, shape_watch, watch_plan
from headrace.core.errors import BadDefinition
from headrace.core.time import iso
from headrace.define.definitions import WatchDefinition
from headrace.define.project import Project, duplicate_definitions
from headrace.run.added_definitions import added_rules
from headrace.run.compiling import check_calls
from headrace.run.definition_text import parse_added
from headrace.run.read_permission import check_definitions
from headrace.run.rule_service import Deployer
from headrace.serving import watches
from headrace.serving.catalog import required_plan
from headrace.serving.database_store import DatabaseStore
from headrace.serving.watches import WatchCounts, WatchStatus


class LocalWatchService:
    """`WatchService` of a project in this process."""

    def __init__(
        self, files: Project, store: DatabaseStore, deployer: Deployer, changing: threading.Lock
    ) -> None:
        self.files, self.store, self.deployer = files, store, deployer
        self._changing = changing  # shared with the rule service

    def watches(self, state: str | None = None) -> list[WatchStatus]:
        with self.store.read() as db:
            return watches.statuses(db, state)

    def watch(self, name: str) -> WatchStatus:
        with self.store.read() as db:
            return watches.status(db, name)

    def numbers(self, problems: Sequence[str] = ()) -> WatchCounts | None:
        """Counts of all watches, with their problems; None if there are no watches."""
        with self.store.read() as db:
            return watches.count_watches(db, problems)

    def add(self, text: str, who: str, caller: Caller = OWNER) -> list[WatchStatus]:
        new = parse_added(text, WatchDefinition, self.files.settings.query)
        check_definitions(caller, self.store.deployed(), new)
        for mistake in duplicate_definitions(new):
            raise mistake
        with self._changing:
            self._check_new(new)
            check_calls(self.files, new)
            with_shapes = [shape_watch(watch) for watch in new]
            plans = self._plans(with_shapes)
            self._deploy_shapes(with_shapes, who)
            self.deployer.add_watches(plans, who)
        return [self.watch(watch.name) for watch in new]

    def _check_new(self, new: Sequence[WatchDefinition]) -> None:
        """Reject names that exist, and ends that have passed."""
        defined = {d.name.lower(): d for d in self.files.definitions}
        defined |= {rule.name.lower(): rule for rule in added_rules(self.store).values()}
        for watch in new:
            if (other := defined.get(watch.name.lower())) is not None:
                raise BadDefinition(
                    f"duplicate name '{watch.name}': it is defined at {other.origin}",
                    hint="give the watch another name.",
                    origin=watch.origin,
                )
            if watch.until_us is not None and watch.until_us <= self.store.clock():
                raise BadDefinition(
                    f"the end of {watch.said} is in the past: {iso(watch.until_us)}",
                    origin=watch.origin,
                )

    def _plans(self, new: Sequence[ShapedWatch]) -> list[WatchPlan]:
        plan = required_plan(self.store.deployed())
        plans = [watch_plan(self.files, plan, each) for each in new]
        with self.store.read() as db:
            refuse_cycles(plan, [*watches.watches_into_streams(db), *plans])
        return plans

    def _deploy_shapes(self, shaped_watches: Sequence[ShapedWatch], who: str) -> None:
        plan = self.store.deployed()
        known = {shape.name for shape in plan.shapes} if plan else set()
        # A shape that only watches of the files have was not checked by the fence; compiling it
        # again does that.
        with self.store.read() as db:
            known &= watches.added_shapes(db)
        new = {each.shape.key: each.watch for each in shaped_watches if each.shape.key not in known}
        if new:
            self.deployer.redeploy(added_rules(self.store), who, tuple(new.values()))

    def remove(self, name: str, who: str) -> WatchStatus:
        found = self.watch(name)
        if not found.kept:
            in_files = self.files.watches.get(found.name)
            raise BadDefinition(
                f"watch '{found.name}' is defined in the project's files and must be removed there",
                hint=f"remove it from {in_files.origin if in_files else 'them'} and restart.",
            )
        self.deployer.become_writer()
        with self.store.write() as db:
            watches.remove(db, found.name, who, self.store.clock())
        return found
