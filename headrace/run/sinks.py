"""The sinks of a running project, one thread each: look at the view, and save what is to be told.

What a look finds is in the outbox before anything of it is delivered (headrace/run/deliveries.py).
A sink that fails says so in the status and tries again; it never stops the others.
tests/run/test_sinks.py drives one without threads, tests/run/test_sinks_killed.py kills it at each
failpoint.
"""

from __future__ import annotations

import threading
from functools import partial

from headrace.compile.plan import Plan, SinkPlan, digest
from headrace.core.errors import Fenced, NotReady
from headrace.core.problems import Problem, ProblemKey, Problems, deduplicated, reason_of
from headrace.core.report import Report
from headrace.core.worker import Worker, problems_of
from headrace.serving.read import Reader
from headrace.serving.sinks import drop_undefined, open_state, save_emission
from headrace.serving.view_tracker import ViewTracker

TURN_S, RETRY_S = 0.1, 1.0


class Sink:
    """One sink; `look` saves all there is to tell now."""

    def __init__(self, plan: SinkPlan, view: str, reader: Reader) -> None:
        self.plan, self.reader = plan, reader
        # A sink whose view means something else now tells it from the beginning.
        fingerprint = digest([plan.subscription, plan.shape, view])
        account = open_state(reader.db, plan.name, fingerprint)
        self.tracker = ViewTracker(reader, plan.subscription, plan.shape, account)

    def look(self) -> None:
        found = self.tracker.poll()
        if found is not None:
            save_emission(self.reader.db, self.plan.name, found, self.reader.clock())
            self.tracker.commit(found)


class Sinks:
    """All sinks of a project."""

    def __init__(self, plan: Plan, reader: Reader, report: Report) -> None:
        self.plan, self.reader = plan, reader
        self._problems = Problems("sink", report)
        drop_undefined(reader.db, {sink.name for sink in plan.sinks})
        self._open: dict[str, Sink] = {}
        self._stop = threading.Event()
        self._workers = [
            Worker(
                f"sink {sink.name}", partial(self._turn, sink), self._stop, report, key=_key(sink)
            )
            for sink in plan.sinks
        ]

    @property
    def problems(self) -> list[Problem]:
        return deduplicated(problems_of(self._workers), self._problems)

    def start(self) -> None:
        for worker in self._workers:
            worker.start()

    def stop(self) -> None:
        """Save what there is to tell, and end."""
        self._stop.set()
        for worker in self._workers:
            worker.join()
        self.look()

    def look(self) -> None:
        """One look of each sink."""
        for sink in self.plan.sinks:
            self._look(sink)

    def _turn(self, sink: SinkPlan) -> float:
        return TURN_S if self._look(sink) else RETRY_S

    def _look(self, sink: SinkPlan) -> bool:
        """One look; a failure is told once and tried again."""
        try:
            self._opened(sink).look()
        except (Fenced, NotReady):
            return False
        except Exception as error:
            sentence = f"sink '{sink.name}' failed: {reason_of(error)}"
            self._problems.note(_key(sink), sentence, error)
            # It may or may not have been saved; opening again finds out.
            self._open.pop(sink.name, None)
            return False
        self._problems.over(_key(sink))
        return True

    def _opened(self, sink: SinkPlan) -> Sink:
        if sink.name not in self._open:
            view = self.plan.view(sink.subscription.view)
            fingerprint = view.fingerprint if view else ""
            self._open[sink.name] = Sink(sink, fingerprint, self.reader)
        return self._open[sink.name]


def _key(sink: SinkPlan) -> ProblemKey:
    return ProblemKey("sink", sink.name, "look")
