"""The sinks of a running project, one thread each: poll the view, and save new panes in the outbox.

Panes are in the outbox before any of them is delivered (headrace/run/delivery_worker.py). A sink
that fails is reported as a problem and retried; it never stops the others.
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
    """One sink; `poll` saves the panes that are new."""

    def __init__(self, plan: SinkPlan, view: str, reader: Reader) -> None:
        self.plan, self.reader = plan, reader
        # A sink whose view has changed starts from the beginning.
        fingerprint = digest([plan.subscription, plan.shape, view])
        account = open_state(reader.db, plan.name, fingerprint)
        self.tracker = ViewTracker(reader, plan.subscription, plan.shape, account)

    def poll(self) -> None:
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
        """Poll once more, and end."""
        self._stop.set()
        for worker in self._workers:
            worker.join()
        self.poll()

    def poll(self) -> None:
        """Poll each sink once."""
        for sink in self.plan.sinks:
            self._poll(sink)

    def _turn(self, sink: SinkPlan) -> float:
        return TURN_S if self._poll(sink) else RETRY_S

    def _poll(self, sink: SinkPlan) -> bool:
        """Poll once; a failure is reported once, and tried again."""
        try:
            self._sink(sink).poll()
        except (Fenced, NotReady):
            return False
        except Exception as error:
            sentence = f"sink '{sink.name}' failed: {reason_of(error)}"
            self._problems.note(_key(sink), sentence, error)
            # The panes may or may not have been saved; opening it again reads that.
            self._open.pop(sink.name, None)
            return False
        self._problems.over(_key(sink))
        return True

    def _sink(self, sink: SinkPlan) -> Sink:
        if sink.name not in self._open:
            view = self.plan.view(sink.subscription.view)
            fingerprint = view.fingerprint if view else ""
            self._open[sink.name] = Sink(sink, fingerprint, self.reader)
        return self._open[sink.name]


def _key(sink: SinkPlan) -> ProblemKey:
    return ProblemKey("sink", sink.name, "poll")
