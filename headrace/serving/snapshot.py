"""The state of one commit that answers need: the plan, the live versions of views, and the progress
of the streams behind them.

Each part is read from the store at its first use and kept, because all readers of a commit need the
same parts. A commit is identified by its number, so parts of different commits are never mixed.
tests/serving/test_answers.py checks that rows and `as_of` are of one commit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from headrace.compile.explain import unknown_view
from headrace.compile.plan import Plan, ViewPlan
from headrace.compile.view_subscription import streams_of
from headrace.core.errors import NotReady
from headrace.serving import catalog
from headrace.serving.answer import AsOf, as_of
from headrace.serving.carried import needs_rebase, set_aside_keys
from headrace.serving.catalog import provisional, read_plan, read_tables, required_plan
from headrace.serving.commits import commit_number
from headrace.serving.database import Transaction
from headrace.serving.progress import read_stream
from headrace.serving.store import StreamState

Names = tuple[str, ...]  # of views


class NotCached(Exception):
    """The rows or progress are not in memory, and there is no transaction to read them."""


@dataclass(frozen=True, slots=True)
class AnswerProgress:
    """The progress of the streams behind some views, and what their answers lack."""

    states: tuple[StreamState, ...]
    provisional: Set[str]  # streams
    tables: Mapping[str, dict[str, str]]  # stream -> the versions of the tables it is joined with
    set_aside: Mapping[str, int]  # stream -> keys of patterns that are not searched

    @property
    def fresh(self) -> bool:
        """Whether speed is ahead of batch."""
        return any(state.reached != state.built for state in self.states)

    def as_of(self, now_us: int) -> dict[str, AsOf]:
        return as_of(self.states, now_us, self.provisional, self.tables, self.set_aside)


class StoreSnapshot:
    """One commit. Without a transaction it returns what was read before, or raises NotCached."""

    def __init__(self, number: int, plan: Plan) -> None:
        self.number, self.plan = number, plan
        self._live: dict[str, ViewPlan] = {}
        self._progress: dict[Names, AnswerProgress] = {}

    @staticmethod
    def of(db: Transaction) -> StoreSnapshot:
        return StoreSnapshot(commit_number(db), required_plan(read_plan(db)))

    def live(self, db: Transaction | None, name: str) -> ViewPlan:
        """The live version of a view."""
        known = self._live.get(name.lower())
        return known or self._live.setdefault(
            name.lower(), live_plan(_required(db), self.plan, name)
        )

    def progress(self, db: Transaction | None, names: Names) -> AnswerProgress:
        """The progress of the streams behind these views."""
        known = self._progress.get(names)
        return known or self._progress.setdefault(
            names, _read_progress(_required(db), self.plan, names)
        )


def _required(db: Transaction | None) -> Transaction:
    if db is None:
        raise NotCached
    return db


def live_plan(db: Transaction, plan: Plan, name: str) -> ViewPlan:
    """The live version of a view; of a view over views, the deployed one."""
    view = plan.view(name)
    if view is None:
        raise unknown_view(name, [shown.name for shown in plan.shown_views])
    if not view.kept:
        for source in view.reads:
            live_plan(db, plan, source)
        return view
    live = catalog.live_plan(db, view.name)
    if live is None:
        raise NotReady(
            f"view '{view.name}' is being built for the first time", hint="try again in a moment."
        )
    return live


def _read_progress(db: Transaction, plan: Plan, names: Names) -> AnswerProgress:
    return AnswerProgress(
        tuple(read_stream(db, name) for name in _streams(plan, names)),
        _provisional(db, plan, names),
        _tables(plan, names, read_tables(db)),
        _set_aside(db, plan, names),
    )


def _streams(plan: Plan, names: Names) -> dict[str, None]:
    """The streams behind views, in the order of the views."""
    views = filter(None, map(plan.view, names))
    return dict.fromkeys(stream for view in views for stream in streams_of(plan, view))


def _kept(plan: Plan, names: Names) -> Iterator[ViewPlan]:
    """The views with stored rows behind views."""
    for view in filter(None, map(plan.view, names)):
        yield from (view,) if view.kept else _kept(plan, view.reads)


def _tables(
    plan: Plan, names: Names, known: Mapping[str, tuple[str, int]]
) -> dict[str, dict[str, str]]:
    """The versions of the tables that those views join each stream with."""
    found: dict[str, dict[str, str]] = {}
    for view in filter(None, map(plan.view, names)):
        for stream, versions in _tables(plan, view.reads, known).items():
            found.setdefault(stream, {}).update(versions)
        used = {name: known[name][0] for name in view.tables if name in known}
        for stream in _streams(plan, (view.name,)):
            found.setdefault(stream, {}).update(used)
    return found


def _provisional(db: Transaction, plan: Plan, names: Names) -> set[str]:
    """The streams of those views whose answers are provisional."""
    return {
        view.stream
        for view in _kept(plan, names)
        if is_provisional(db, live_plan(db, plan, view.name).recompute)
    }


def is_provisional(db: Transaction, version: str) -> bool:
    """Whether some rows of a version are wrong until the next generation."""
    return bool(provisional(db, version)) or needs_rebase(db, version)


def _set_aside(db: Transaction, plan: Plan, names: Names) -> dict[str, int]:
    """How many keys of those views' patterns are not searched, by stream."""
    found: Counter[str] = Counter()
    for view in _kept(plan, names):
        found[view.stream] += len(set_aside_keys(db, live_plan(db, plan, view.name)))
    return dict(+found)
