"""The watches of a project, from its store.

A watch of a shape that is deployed already is a row of constants more, which a running project
takes in between two epochs. Only a shape that is new changes what batch and speed keep, so that is
handed to whoever can deploy. tests/run/test_watchbook.py checks each.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

from headrace.access.caller import OWNER, Caller
from headrace.compile.destinations import refuse_cycles
from headrace.compile.plan import WatchPlan
from headrace.compile.watches import ShapedWatch, shape_watch, watch_plan
from headrace.core.errors import BadDefinition, NotReady
from headrace.core.time import iso
from headrace.define.definitions import WatchDefinition
from headrace.define.project import Project, duplicate_definitions
from headrace.run.added import read_added
from headrace.run.compiling import check_calls
from headrace.run.reading import check_definitions
from headrace.run.rulebook import Kept
from headrace.run.rules import kept_rules
from headrace.serving import watches
from headrace.serving.sqlite_store import SqliteStore
from headrace.serving.watches import WatchNumbers, WatchStatus


class WatchDeployer(Protocol):
    def redeploy(self, kept: Kept, who: str, watches: tuple[WatchDefinition, ...] = ()) -> None:
        """Make these the rules that are kept, with the shapes of these watches too."""

    def admit(self, plans: Sequence[WatchPlan], who: str) -> None:
        """Take in watches of deployed shapes."""

    def dismiss(self, name: str, who: str) -> None:
        """Take a watch away."""


class StoreWatchbook:
    """`WatchService` of a project whose store is at hand."""

    def __init__(
        self, files: Project, store: SqliteStore, deployer: WatchDeployer, changing: threading.Lock
    ) -> None:
        self.files, self.store, self.deployer = files, store, deployer
        self._changing = changing  # the rulebook's too

    def watches(self, state: str | None = None) -> list[WatchStatus]:
        with self.store.read() as db:
            return watches.statuses(db, state)

    def watch(self, name: str) -> WatchStatus:
        with self.store.read() as db:
            return watches.status(db, name)

    def numbers(self, problems: Sequence[str] = ()) -> WatchNumbers | None:
        """All watches in numbers, with what is wrong with them; None if there are none."""
        with self.store.read() as db:
            return watches.numbers(db, problems)

    def add(self, text: str, who: str, caller: Caller = OWNER) -> list[WatchStatus]:
        said = read_added(text, WatchDefinition, self.files.settings.query)
        check_definitions(caller, self.store.deployed(), said)
        for mistake in duplicate_definitions(said):
            raise mistake
        with self._changing:
            self._check_names(said)
            check_calls(self.files, said)
            made = [shape_watch(watch) for watch in said]
            plans = self._plans(made)
            self._deploy_new(made, who)
            self.deployer.admit(plans, who)
        return [self.watch(watch.name) for watch in said]

    def _check_names(self, said: Sequence[WatchDefinition]) -> None:
        taken = {d.name.lower(): d for d in self.files.definitions}
        taken |= {rule.name.lower(): rule for rule in kept_rules(self.store).values()}
        for watch in said:
            if (other := taken.get(watch.name.lower())) is not None:
                raise BadDefinition(
                    f"'{watch.name}' is defined already, at {other.origin}",
                    hint="give the watch another name.",
                    origin=watch.origin,
                )
            if watch.until_us is not None and watch.until_us <= self.store.clock():
                raise BadDefinition(
                    f"{watch.said} is to end at {iso(watch.until_us)}, which has passed",
                    origin=watch.origin,
                )

    def _plans(self, made: Sequence[ShapedWatch]) -> list[WatchPlan]:
        plan = self.store.deployed()
        if plan is None:
            raise NotReady("nothing is deployed yet", hint="start the project with `headrace run`.")
        plans = [watch_plan(self.files, plan, each) for each in made]
        with self.store.read() as db:
            refuse_cycles(plan, [*watches.into_streams(db), *plans])
        return plans

    def _deploy_new(self, made: Sequence[ShapedWatch], who: str) -> None:
        plan = self.store.deployed()
        known = {shape.name for shape in plan.shapes} if plan else set()
        # A shape that only the files' watches have was not asked of the fence: compiling asks it.
        with self.store.read() as db:
            known &= watches.added_shapes(db)
        new = {each.shape.key: each.watch for each in made if each.shape.key not in known}
        if new:
            self.deployer.redeploy(kept_rules(self.store), who, tuple(new.values()))

    def remove(self, name: str, who: str) -> WatchStatus:
        found = self.watch(name)
        if not found.kept:
            said = self.files.watches.get(found.name)
            raise BadDefinition(
                f"watch '{found.name}' is in the project's files, so it is removed there",
                hint=f"take it out of {said.origin if said else 'them'} and start again.",
            )
        self.deployer.dismiss(found.name, who)
        return found
