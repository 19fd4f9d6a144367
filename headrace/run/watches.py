"""The watches of a running project: one thread looks and ends, a few threads deliver.

Watches come and go while it runs, and each may notify a place of its own, so places have no
threads of their own here: whichever has something due gets one of a few. A place that rules notify
too is left to theirs. tests/run/test_watches.py drives it without Spark.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial

import structlog

from headrace.compile.plan import ActionPlan, Plan
from headrace.core.deadline import Deadline
from headrace.core.errors import BadDefinition, Fenced
from headrace.core.problems import Problems, reason_of
from headrace.core.report import Report
from headrace.core.time import SECOND, Clock, now_us
from headrace.core.worker import Worker, problems_of
from headrace.define.definitions import WatchDefinition
from headrace.define.project import Project
from headrace.run.added import read_kind
from headrace.run.alerts import STOP_S_MAX, action_of
from headrace.run.deliveries import Deliveries
from headrace.run.targets import Submit
from headrace.serving import watches
from headrace.serving.database import Database
from headrace.serving.notices import due_actions
from headrace.serving.sqlite_store import SqliteStore
from headrace.serving.watching import WatchLookout

log = structlog.get_logger()
TURN_S, CLOSE_US = 0.1, SECOND
DELIVERERS = 8


def with_watches(
    project: Project, store: SqliteStore, more: tuple[WatchDefinition, ...] = ()
) -> Project:
    """The project with one watch of each shape that the store keeps, and with these: what decides
    on the plan.
    """
    with store.read() as db:
        texts, names = watches.shapes(db), watches.kept_names(db)
    said = {d.name.lower(): d for d in project.definitions}
    for name in (*names, *(watch.name for watch in more)):
        if (other := said.get(name.lower())) is not None:
            raise BadDefinition(
                f"'{name}' is defined in the project and is also a watch that was added",
                detail=f"the definition is at {other.origin}.",
                hint=f"rename one of them, or `headrace watch remove {name}`.",
            )
    kept = [read_kind(t, f"watch {shape}", WatchDefinition)[0] for shape, t in texts.items()]
    new = {watch.name.lower() for watch in more}
    both = (*(watch for watch in kept if watch.name.lower() not in new), *more)
    return project.with_added(both)


class Watches:
    """All watches of a project and what they notify."""

    def __init__(
        self,
        plan: Plan,
        project: Project,
        db: Database,
        submit: Submit,
        report: Report,
        close: Callable[[set[str]], None],
        clock: Clock = now_us,
    ) -> None:
        self.plan, self.project, self.db, self.submit = plan, project, db, submit
        self.close, self.clock = close, clock
        self.lookout = WatchLookout(db, clock)
        self.others = {action.name for rule in plan.rules for action in rule.actions}
        self._problems = Problems("watch", report)
        self._deliveries: dict[str, Deliveries] = {}
        self._busy: dict[str, Future[None]] = {}  # what is delivered now, by action
        self._closed_at = 0
        self._stop = threading.Event()
        self._worker = Worker("watches", self._turn, self._stop, report)
        self._pool = ThreadPoolExecutor(DELIVERERS, thread_name_prefix="watch-deliver")

    @property
    def problems(self) -> dict[str, str]:
        return problems_of([self._worker]) | self._problems

    def start(self) -> None:
        """Start, also without shapes: watches that have ended may still have notices that wait."""
        self._worker.start()

    def halt(self) -> None:
        """Raise what there is, and end; what waits is delivered by whoever continues the queues."""
        self._stop.set()
        deadline = Deadline(STOP_S_MAX)
        self._worker.join(deadline.left_s)
        self._pool.shutdown(wait=False, cancel_futures=True)
        wait(tuple(self._busy.values()), deadline.left_s)
        self.look()

    def stop(self) -> None:
        """Raise what there is, deliver for no longer than STOP_S_MAX, and end; the rest waits."""
        self.halt()
        self._deliver_due(Deadline(STOP_S_MAX).passed)

    def drain(self, ended: Callable[[], bool] = lambda: False) -> None:
        """One look at each shape, and all that is due until an action fails."""
        self.look()
        self._deliver_due(ended)

    def _deliver_due(self, ended: Callable[[], bool]) -> None:
        def deliver() -> None:
            for name in self._due():
                self._deliver(name, ended)

        self._tried("the delivery of watches", deliver)

    def look(self) -> None:
        """Raise what is new, then end what is due: what came before the end still counts."""
        for shape in self.plan.shapes:
            look = partial(self.lookout.look, shape)
            self._tried(f"the look at watches of shape {shape.name}", look)
        self._tried("the end of watches", self.lookout.end_due)

    def _turn(self) -> float:
        self.look()
        self._tried("the closing of watches", self._close)
        self._tried("the delivery of watches", self._send)
        return TURN_S

    def _send(self) -> None:
        for name in self._due():
            self._busy[name] = sent = self._pool.submit(self._deliver, name, self._stop.is_set)
            sent.add_done_callback(partial(self._delivered, name))

    def _delivered(self, name: str, sent: Future[None]) -> None:
        del self._busy[name]

    def _close(self) -> None:
        """Ended watches are compared no more; not at each end, because Spark reads anew."""
        if self.clock() - self._closed_at < CLOSE_US:
            return
        self._closed_at = self.clock()
        with self.db.read() as db:
            shapes = watches.unclosed(db) & {shape.name for shape in self.plan.shapes}
        if shapes:
            self.close(shapes)

    def _due(self) -> list[str]:
        with self.db.read() as db:
            waiting = due_actions(db, self.clock())
            unknown = set(waiting) - self.others - set(self._deliveries)
            plans = watches.actions_of(db) if unknown else {}
        for name in unknown & set(plans):
            self._tried(f"action {name}", partial(self._make, plans[name]))
        return [name for name in waiting if name in self._deliveries and name not in self._busy]

    def _make(self, plan: ActionPlan) -> None:
        action = action_of(plan, self.project, self.submit)
        settings = self.project.settings.notify
        self._deliveries[plan.name] = Deliveries(plan, action, self.db, settings, self.clock)

    def _deliver(self, name: str, ended: Callable[[], bool]) -> None:
        deliveries = self._deliveries[name]
        try:
            deliveries.drain(ended)
        except Exception as error:
            # The store cannot be written now; what was delivered will come again.
            log.warning("watch.not_delivered", action=name, reason=repr(error))
        finally:
            self._problems.over(f"action {name}")
            if deliveries.problem:
                self._problems[f"action {name}"] = deliveries.problem

    def _tried(self, what: str, step: Callable[[], object]) -> None:
        try:
            step()
            self._problems.over(what)
        except Fenced:
            self._stop.set()
        except Exception as error:
            self._problems.note(what, f"{what} failed: {reason_of(error)}", error)
