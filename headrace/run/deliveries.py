"""The one worker that delivers what is in the outbox: panes of sinks, and notifications.

A thread finds the queues that have something due, ten times a second, and gives each a thread, so
that a destination that hangs holds up nobody else. Watches come and go while it runs, and each may
notify a destination of its own, so queues that only watches name get a few threads together, those
first that were tried longest ago. A queue has one thread at a time, also while the worker of
another plan continues it. tests/run/test_alerts.py and tests/run/test_watches.py drive it with
threads, tests/run/test_alerts_killed.py and tests/run/test_sinks_killed.py kill it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from headrace.compile.plan import Plan
from headrace.core.deadline import Deadline
from headrace.core.errors import Fenced, Unavailable
from headrace.core.problems import Problem, ProblemKey, Problems, deduplicated, reason_of
from headrace.core.report import Report
from headrace.core.subscription import Guarantee
from headrace.core.time import Clock, now_us
from headrace.core.worker import Worker, problems_of
from headrace.define.project import Project
from headrace.destination.protocol import Submit, Surroundings
from headrace.run.delivery import DeliveryRoute, QueueDelivery, routes_of
from headrace.serving import watches
from headrace.serving.database import Database
from headrace.serving.outbox import due_queues

TURN_S, STOP_S_MAX = 0.1, 15.0
SHARED_THREADS = 8


class Deliveries:
    """All queues of a project; refused if a destination cannot work with the settings there are."""

    def __init__(
        self,
        plan: Plan,
        project: Project,
        db: Database,
        submit: Submit,
        report: Report,
        clock: Clock = now_us,
        before: Deliveries | None = None,
    ) -> None:
        self.db, self.clock, self.report = db, clock, report
        self.settings, self.surroundings = project.settings.notify, Surroundings(project, submit)
        routes = list(routes_of(plan))
        self.named = frozenset(route.queue for route in routes)
        self.made = {route.queue: self._make(route) for route in routes}
        self._problems = Problems("delivery", report)
        # Shared with the worker before, which does not wait for a destination that hangs.
        self._busy: dict[str, threading.Thread] = before._busy if before else {}
        self._stop = threading.Event()
        self._worker = Worker("deliveries", self._turn, self._stop, report)

    @property
    def problems(self) -> list[Problem]:
        made = (delivery.problems for delivery in list(self.made.values()))
        return deduplicated(problems_of([self._worker]), self._problems, *made)

    @property
    def problems_of_watches(self) -> list[Problem]:
        """Of the queues that only watches name."""
        known = {self.made[name].route.key for name in self.named}
        return [problem for problem in self.problems if problem.key not in known]

    def start(self) -> None:
        self._worker.start()

    def halt(self) -> None:
        """End; what waits is delivered by whoever continues the queues."""
        self._stop.set()
        deadline = Deadline(STOP_S_MAX)
        self._worker.join(deadline.left_s)
        for thread in list(self._busy.values()):
            thread.join(deadline.left_s)

    def stop(self) -> None:
        """Deliver for no longer than STOP_S_MAX, and end; the rest waits. A destination that hangs
        or fails is not waited for a second time.
        """
        self.halt()
        deadline = Deadline(STOP_S_MAX)
        with suppress(Unavailable):  # without the store there is nothing to deliver
            for name in [name for name in self._ready() if self.made[name].problem is None]:
                self._deliver(name, deadline.passed)

    def drain(self, ended: Callable[[], bool] = lambda: False) -> None:
        """All that is due, until a destination fails or the time for it has ended."""
        for name in self._ready():
            self._deliver(name, ended)

    def _turn(self) -> float:
        spare = SHARED_THREADS - len(set(self._busy) - self.named)
        ready = sorted(self._ready(), key=lambda name: self.made[name].tried_us)
        others = [name for name in ready if name not in self.named]
        for name in set(ready) - set(others[max(spare, 0) :]):
            given = name, self._stop.is_set
            thread = threading.Thread(target=self._deliver, args=given, name=name, daemon=True)
            self._busy[name] = thread
            thread.start()
        return TURN_S

    def _deliver(self, name: str, ended: Callable[[], bool]) -> None:
        try:
            self.made[name].drain(ended)
        except Fenced:
            self._stop.set()
        finally:
            self._busy.pop(name, None)

    def _ready(self) -> list[str]:
        """The queues that have something to do now, and nobody who does it."""
        with self.db.read() as db:
            due = set(due_queues(db, self.clock()))
            unknown = due - set(self.made)
            notified = watches.destinations_of(db) if unknown else {}
        for name in unknown & set(notified):
            self._try_to_make(DeliveryRoute.of_notified(notified[name]))
        return [
            name
            for name, delivery in self.made.items()
            if (name in due or delivery.unsettled) and not delivery.rests and name not in self._busy
        ]

    def _try_to_make(self, route: DeliveryRoute) -> None:
        """A watch may name what cannot work any more since the settings have changed."""
        key = ProblemKey(*route.key[:2], "make")
        try:
            self.made[route.queue] = self._make(route)
            self._problems.over(key)
        except Exception as error:
            self._problems.note(key, f"{route.failed}: {reason_of(error)}", error)

    def _make(self, route: DeliveryRoute) -> QueueDelivery:
        there = self.surroundings
        if route.guarantee is Guarantee.AT_MOST_ONCE:
            there = replace(there, durable=False)
        writer = route.destination.connect(there)
        return QueueDelivery(route, writer, self.db, self.settings, self.clock, self.report)
