"""One queue of the outbox, worked off: take, deliver, mark.

    exactly once    delivered, marked; after a kill the destination says what it has already
    at least once   delivered, marked; after a kill what was not marked is delivered again
    at most once    marked, delivered; after a kill what was marked only is lost

The panes of a sink keep their order: if one fails, all wait for a second, and are never given up.
Notifications are at least once and go on without each other: one that fails is due again after
`notify.pause`, twice that after each further attempt, up to `notify.pause_max`; after
`notify.attempts_max` attempts it has failed, and is kept with the reason. While the store cannot be
written, the whole queue pauses like that, because what is delivered then comes again. A failure is
a problem of the sink or of what was notified, and never of a stream that it feeds.
tests/run/test_deliveries.py drives both with a held clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from headrace.compile.plan import Plan, SinkPlan
from headrace.core.errors import Conflict, Fenced, Unavailable
from headrace.core.failpoint import failpoint
from headrace.core.problems import SENTENCE_MAX, Problem, ProblemKey, Problems, reason_of
from headrace.core.report import Report
from headrace.core.subscription import Guarantee
from headrace.core.time import SECOND, Clock, now_us
from headrace.define.settings import NotifySettings
from headrace.destination.kinds import Destination
from headrace.destination.protocol import DestinationWriter, Message, Undeliverable
from headrace.serving.database import Database
from headrace.serving.outbox import Queue, sink_queue
from headrace.serving.sinks import count_panes, mark_delivered, renew_incarnation

SINK_PAUSE_US = SECOND


@dataclass(frozen=True, slots=True)
class DeliveryRoute:
    """A queue of the outbox, where it goes, and what is promised."""

    queue: str
    destination: Destination
    key: ProblemKey
    failed: str  # how a failure is told
    guarantee: Guarantee = Guarantee.AT_LEAST_ONCE
    sink: str | None = None  # whose panes they are; None: they are notifications

    @staticmethod
    def of_sink(sink: SinkPlan) -> DeliveryRoute:
        name, key = sink.name, ProblemKey("sink", sink.name, "delivery")
        said = sink.destination, key, f"sink '{name}' failed", sink.guarantee, name
        return DeliveryRoute(sink_queue(name), *said)

    @staticmethod
    def of_notified(to: Destination) -> DeliveryRoute:
        key = ProblemKey("action", to.name, "delivery")
        return DeliveryRoute(to.name, to, key, f"{to.name} was not notified")


def routes_of(plan: Plan) -> Iterator[DeliveryRoute]:
    """The queues that a plan names: one for each sink, and one for each destination of rules."""
    yield from map(DeliveryRoute.of_sink, plan.sinks)
    notified = {d.name: d for rule in plan.rules for d in rule.destinations}
    yield from map(DeliveryRoute.of_notified, notified.values())


class QueueDelivery:
    """One route, and the writer at its end."""

    def __init__(
        self,
        route: DeliveryRoute,
        writer: DestinationWriter,
        db: Database,
        settings: NotifySettings,
        clock: Clock = now_us,
        report: Report = lambda kind, fields: None,
    ) -> None:
        self.route, self.writer, self.db = route, writer, db
        self.settings, self.clock = settings, clock
        self.queue = Queue(db, route.queue)
        self.problems = Problems("delivery", report, clock)
        #: Whether it is known what the destination has already.
        self.resumed = route.guarantee is not Guarantee.EXACTLY_ONCE
        self.tried_us = 0  # when it was last worked off
        self._rests_until_us, self._hindered = 0, 0

    @property
    def problem(self) -> Problem | None:
        """Why the newest attempt failed, until one is well."""
        return self.problems.get(self.route.key)

    @property
    def unsettled(self) -> bool:
        """Whether there is something to do although nothing may be due."""
        return not self.resumed or self._hindered > 0

    @property
    def rests(self) -> bool:
        """Whether nothing of it is tried yet, because the last attempt failed."""
        return self.clock() < self._rests_until_us

    def drain(self, ended: Callable[[], bool] = lambda: False) -> None:
        """All that is due, until something fails or the time for it has ended. If the store cannot
        be written now, what was delivered comes again.
        """
        self.tried_us, before = self.clock(), self.problem
        try:
            while not ended() and self.step() and self.problem is None:
                pass
            if self._hindered and self.problem is before:
                self.problems.over(self.route.key)
            self._hindered = 0
        except Fenced:
            raise
        except BaseException as error:
            self._note(error)
            self._rest(self._pause_us(self._hindered))
            self._hindered += 1

    def step(self) -> bool:
        """Try what is due, up to what the writer takes at once; whether there was something."""
        if self.rests or not (self.resumed or self._tried(self._resume)):
            return False
        due = self.queue.due(self.clock(), self.writer.at_once)
        if due:
            self._deliver(due)
        return bool(due)

    def _resume(self) -> None:
        """Continue after what the destination has already."""
        there, sink = self.writer.newest(), self.route.sink or ""
        with self.db.read() as db:
            newest, *_ = count_panes(db, sink)
        if there > newest:
            raise Unavailable(
                f"{self.route.destination.target} has pane {there}, but the store knows of "
                f"{newest} only",
                hint="it is of another state folder: move it away, or give the sink another one.",
            )
        mark_delivered(self.db, sink, there)
        self.resumed = True

    def _deliver(self, due: Sequence[Message]) -> None:
        if self.route.guarantee is Guarantee.AT_MOST_ONCE:
            self.queue.delivered(due, self.clock())
            failpoint("outbox.marked")
        if not self._tried(partial(self._write, due), due):
            return
        if self.route.guarantee is not Guarantee.AT_MOST_ONCE:
            failpoint("outbox.delivered")
            self.queue.delivered(due, self.clock())

    def _write(self, due: Sequence[Message]) -> None:
        try:
            self.writer.deliver(due)
        except Conflict:
            # An alert's id is made of the alert, so the event that has it is the alert's.
            if self.route.sink is not None:
                # The next try delivers the panes under other ids: some twice rather than one never.
                with self.db.write() as db:
                    renew_incarnation(db, self.route.sink)
                raise

    # What fails

    def _tried(self, act: Callable[[], None], due: Sequence[Message] = ()) -> bool:
        try:
            act()
        except Fenced:
            raise
        except Exception as error:
            self._fail(due, error)
            return False
        self.problems.over(self.route.key)
        return True

    def _fail(self, due: Sequence[Message], error: Exception) -> None:
        self._note(error)
        now, reason = self.clock(), _reason(error)
        if self.route.sink is not None:
            # A write may have been cut in the middle; resuming finds out.
            self.resumed = self.route.guarantee is not Guarantee.EXACTLY_ONCE
            self._rest(SINK_PAUSE_US)
        elif isinstance(error, Undeliverable):
            self.queue.failed(due, reason, now)
        else:
            for message in due:
                if message.attempts + 1 >= self.settings.attempts_max:
                    self.queue.failed([message], reason, now)
                else:
                    self.queue.retry_later(
                        [message], reason, now + self._pause_us(message.attempts)
                    )

    def _pause_us(self, failures: int) -> int:
        return min(self.settings.pause_us << min(failures, 40), self.settings.pause_max_us)

    def _rest(self, pause_us: int) -> None:
        self._rests_until_us = self.clock() + pause_us

    def _note(self, error: BaseException) -> None:
        self.problems.note(self.route.key, f"{self.route.failed}: {_reason(error)}", error)


def _reason(error: BaseException) -> str:
    plain = str(error) if isinstance(error, Undeliverable | ConnectionError) else ""
    return plain[:SENTENCE_MAX] or reason_of(error)
