"""The sinks of a running project, one thread each: look, save, deliver, mark.

  exactly once   saved, delivered, marked; after a kill the target says what it has already
  at least once  saved, delivered, marked; after a kill what was not marked is delivered again
  at most once   saved, marked, delivered; after a kill what was marked only is lost

A sink that fails says so in the status and tries again; it never stops the others.
tests/run/test_sinks.py drives one without threads, tests/run/test_sinks_killed.py kills it at each
failpoint.
"""

from __future__ import annotations

import threading
from functools import partial

from headrace.compile.plan import Plan, SinkPlan, digest
from headrace.core.errors import Conflict, Fenced, NotReady, Unavailable
from headrace.core.failpoint import failpoint
from headrace.core.problems import Problems, reason_of
from headrace.core.report import Report
from headrace.core.subscription import Guarantee
from headrace.core.worker import Worker, problems_of
from headrace.define.project import Project
from headrace.run.targets import Submit, Target, target_of
from headrace.serving.outbox import Outbox, Waiting, forget_others
from headrace.serving.read import Reader
from headrace.serving.watch import Watch

TURN_S, RETRY_S = 0.1, 1.0
DELIVERED_AT_ONCE = 1_000


class Sink:
    """One sink; `step` does all there is to do now."""

    def __init__(self, plan: SinkPlan, view: str, reader: Reader, target: Target) -> None:
        self.plan, self.target = plan, target
        self.outbox = Outbox(reader.db, plan.name)
        # A sink whose view means something else now tells it from the beginning.
        account = self.outbox.open(digest([plan.subscription, plan.shape, view]))
        self.watch = Watch(reader, plan.subscription, plan.shape, account)
        if plan.guarantee is Guarantee.EXACTLY_ONCE:
            self._resume(account.sequence)

    def _resume(self, newest: int) -> None:
        """Go on after what the target has already."""
        there = self.target.resume()
        if there > newest:
            raise Unavailable(
                f"{self.plan.target} has pane {there}, but the store knows of {newest} only",
                hint="it is of another state folder: move it away, or give the sink another one.",
            )
        if there:
            self.outbox.mark(there)

    def step(self) -> int:
        """Look once and deliver everything that waits; how many panes that was."""
        found = self.watch.look()
        if found is not None:
            self.outbox.save(found)
            self.watch.told(found)
        delivered = 0
        while waiting := self.outbox.waiting(DELIVERED_AT_ONCE):
            self._deliver(waiting)
            delivered += len(waiting)
        return delivered

    def _deliver(self, waiting: Waiting) -> None:
        newest = waiting[-1][0]
        if self.plan.guarantee is Guarantee.AT_MOST_ONCE:
            self.outbox.mark(newest)
            failpoint("sink.marked")
            self.target.write(waiting, self.outbox.begun)
        else:
            self._write(waiting)
            failpoint("sink.delivered")
            self.outbox.mark(newest)

    def _write(self, waiting: Waiting) -> None:
        try:
            self.target.write(waiting, self.outbox.begun)
        except Conflict:
            # The next try delivers them under other ids: some twice rather than one never.
            self.outbox.begin_again()
            raise


class Sinks:
    """All sinks of a project."""

    def __init__(
        self, plan: Plan, project: Project, reader: Reader, submit: Submit, report: Report
    ) -> None:
        self.plan, self.project, self.reader = plan, project, reader
        self.submit, self.report = submit, report
        self._problems = Problems("sink", report)
        forget_others(reader.db, {sink.name for sink in plan.sinks})
        self._open: dict[str, Sink] = {}
        self._stop = threading.Event()
        self._workers = [
            Worker(f"sink {sink.name}", partial(self._turn, sink), self._stop, report)
            for sink in plan.sinks
        ]

    @property
    def problems(self) -> dict[str, str]:
        return problems_of(self._workers) | self._problems

    def start(self) -> None:
        for worker in self._workers:
            worker.start()

    def stop(self) -> None:
        """Deliver what there is, and end."""
        self._stop.set()
        for worker in self._workers:
            worker.join()
        self.drain()

    def drain(self) -> None:
        """One step of each sink."""
        for sink in self.plan.sinks:
            self._try(sink)

    def _turn(self, sink: SinkPlan) -> float:
        return TURN_S if self._try(sink) else RETRY_S

    def _try(self, sink: SinkPlan) -> bool:
        """One step; a failure is told once and tried again."""
        try:
            self._opened(sink).step()
        except (Fenced, NotReady):
            return False
        except Exception as error:
            sentence = f"sink '{sink.name}' failed: {reason_of(error)}"
            self._problems.note(f"sink {sink.name}", sentence, error)
            # A write may have been cut in the middle; opening again finds out.
            self._open.pop(sink.name, None)
            return False
        self._problems.over(f"sink {sink.name}")
        return True

    def _opened(self, sink: SinkPlan) -> Sink:
        if sink.name not in self._open:
            view = self.plan.view(sink.subscription.view)
            target = target_of(sink, self.project, self.submit)
            fingerprint = view.fingerprint if view else ""
            self._open[sink.name] = Sink(sink, fingerprint, self.reader, target)
        return self._open[sink.name]
