"""Delivers the messages of the outbox: panes of sinks, and notifications.

A thread finds the queues with due messages ten times a second and gives each queue a thread, so
that a destination that hangs delays no other. Watches are added and removed at run time, and each
may have its own destination; queues that only watches name therefore share a few threads, least
recently tried first. A queue has one thread at a time, also after another plan's worker has taken
over. tests/run/test_alerts.py and tests/run/test_watches.py drive it with
threads, tests/run/test_alerts_killed.py and tests/run/test_sinks_killed.py kill it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from headrace.compile.plan import Plan
from headrace.core.errors import Fenced, Unavailable
from headrace.core.problems import Problem, ProblemKey, Problems, deduplicated, reason_of
from headrace.core.report import Report
from headrace.core.subscription import Guarantee
from headrace.core.time import Clock, now_us
from headrace.core.worker import Worker, problems_of
from headrace.define.project import Project
from headrace.destination.protocol import DestinationContext, Submit
from headrace.run.queue_delivery import DeliveryRoute, QueueDelivery, routes_of
from headrace.serving import watches
from headrace.serving.database import Database
from headrace.serving.outbox import due_queues

TURN_S, STOP_S_MAX = 0.1, 15.0
SHARED_THREADS = 8


class Deadline:
    """A deadline that many seconds from now.

    >>> now_s = iter([0.0, 4.0, 9.0, 11.0])
    >>> deadline = Deadline(10.0, lambda: next(now_s))
    >>> deadline.left_s, deadline.passed(), deadline.left_s
    (6.0, False, 0.0)
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends_at = clock() + seconds

    @property
    def left_s(self) -> float:
        """The seconds that are left; 0 after the deadline."""
        return max(0.0, self._ends_at - self._clock())

    def passed(self) -> bool:
        return self.left_s == 0.0


class DeliveryWorker:
    """All queues of a plan; raises if a destination does not work with the settings."""

    def __init__(
        self,
        plan: Plan,
        project: Project,
        db: Database,
        submit: Submit,
        report: Report,
        clock: Clock = now_us,
        before: DeliveryWorker | None = None,
    ) -> None:
        self.db, self.clock, self.report = db, clock, report
        self.settings, self.context = project.settings.notify, DestinationContext(project, submit)
        routes = list(routes_of(plan))
        self.plan_queues = frozenset(route.queue for route in routes)
        self.queues = {route.queue: self._connect(route) for route in routes}
        self._problems = Problems("delivery", report)
        # Shared with the previous worker, which does not wait for a destination that hangs.
        self._busy: dict[str, threading.Thread] = before._busy if before else {}
        self._stop = threading.Event()
        self._worker = Worker("deliveries", self._turn, self._stop, report)

    @property
    def problems(self) -> list[Problem]:
        problems = (delivery.problems for delivery in list(self.queues.values()))
        return deduplicated(problems_of([self._worker]), self._problems, *problems)

    @property
    def problems_of_watches(self) -> list[Problem]:
        """The problems of queues that only watches name."""
        known = {self.queues[name].route.key for name in self.plan_queues}
        return [problem for problem in self.problems if problem.key not in known]

    def start(self) -> None:
        self._worker.start()

    def halt(self) -> None:
        """End without draining; another worker delivers the remaining messages."""
        self._stop.set()
        deadline = Deadline(STOP_S_MAX)
        self._worker.join(deadline.left_s)
        for thread in list(self._busy.values()):
            thread.join(deadline.left_s)

    def stop(self) -> None:
        """Drain the queues for at most STOP_S_MAX, and end; the rest stays in the outbox. Queues
        that hang or have a problem are not tried again.
        """
        self.halt()
        deadline = Deadline(STOP_S_MAX)
        with suppress(Unavailable):  # without the store there is nothing to deliver
            for name in [name for name in self._ready() if self.queues[name].problem is None]:
                self._deliver(name, deadline.passed)

    def drain(self, ended: Callable[[], bool] = lambda: False) -> None:
        """Deliver all due messages, until a destination fails or `ended` returns True."""
        for name in self._ready():
            self._deliver(name, ended)

    def _turn(self) -> float:
        spare = SHARED_THREADS - len(set(self._busy) - self.plan_queues)
        ready = sorted(self._ready(), key=lambda name: self.queues[name].tried_us)
        others = [name for name in ready if name not in self.plan_queues]
        for name in set(ready) - set(others[max(spare, 0) :]):
            args = name, self._stop.is_set
            thread = threading.Thread(target=self._deliver, args=args, name=name, daemon=True)
            self._busy[name] = thread
            thread.start()
        return TURN_S

    def _deliver(self, name: str, ended: Callable[[], bool]) -> None:
        try:
            self.queues[name].drain(ended)
        except Fenced:
            self._stop.set()
        finally:
            self._busy.pop(name, None)

    def _ready(self) -> list[str]:
        """The queues that have something to do and no thread yet."""
        with self.db.read() as db:
            due = set(due_queues(db, self.clock()))
            unknown = due - set(self.queues)
            destinations = watches.destinations_of(db) if unknown else {}
        for name in unknown & set(destinations):
            self._try_to_connect(DeliveryRoute.of_notification(destinations[name]))
        return [
            name
            for name, delivery in self.queues.items()
            if (name in due or delivery.must_retry)
            and not delivery.backing_off
            and name not in self._busy
        ]

    def _try_to_connect(self, route: DeliveryRoute) -> None:
        """A watch may name a destination that the current settings do not allow any more."""
        key = ProblemKey(*route.key[:2], "make")
        try:
            self.queues[route.queue] = self._connect(route)
            self._problems.over(key)
        except Exception as error:
            self._problems.note(key, f"{route.failure}: {reason_of(error)}", error)

    def _connect(self, route: DeliveryRoute) -> QueueDelivery:
        context = self.context
        if route.guarantee is Guarantee.AT_MOST_ONCE:
            context = replace(context, durable=False)
        writer = route.destination.connect(context)
        return QueueDelivery(route, writer, self.db, self.settings, self.clock, self.report)
