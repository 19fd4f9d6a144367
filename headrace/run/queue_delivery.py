"""Delivers one queue of the outbox: read due messages, deliver them, mark them delivered.

    exactly once    deliver, then mark; after a crash the destination says which panes it has
    at least once   deliver, then mark; after a crash unmarked messages are delivered again
    at most once    mark, then deliver; after a crash marked messages may be lost

The panes of a sink are delivered in order: if one fails, all are retried after a second, without
limit. Notifications are at least once and independent of each other: one that fails is retried
after `notify.pause`, with exponential back-off up to `notify.pause_max`; after
`notify.attempts_max` attempts it is marked failed with the reason. While the store cannot be
written, the whole queue backs off, because its messages would be delivered twice. A failure is
a problem of the sink or of the destination, never of a stream that the sink writes to.
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
    """A queue of the outbox, its destination, and its delivery guarantee."""

    queue: str
    destination: Destination
    key: ProblemKey
    failure: str  # how the sentence of a problem begins
    guarantee: Guarantee = Guarantee.AT_LEAST_ONCE
    sink: str | None = None  # the sink of a queue of panes; None for notifications

    @staticmethod
    def of_sink(sink: SinkPlan) -> DeliveryRoute:
        name, key = sink.name, ProblemKey("sink", sink.name, "delivery")
        failure = f"sink '{name}' failed"
        return DeliveryRoute(sink_queue(name), sink.destination, key, failure, sink.guarantee, name)

    @staticmethod
    def of_notification(to: Destination) -> DeliveryRoute:
        key = ProblemKey("action", to.name, "delivery")
        return DeliveryRoute(to.name, to, key, f"{to.name} was not notified")


def routes_of(plan: Plan) -> Iterator[DeliveryRoute]:
    """The queues that a plan names: one for each sink, and one for each destination of rules."""
    yield from map(DeliveryRoute.of_sink, plan.sinks)
    destinations = {d.name: d for rule in plan.rules for d in rule.destinations}
    yield from map(DeliveryRoute.of_notification, destinations.values())


class QueueDelivery:
    """Delivers the messages of one route with a writer."""

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
        # Whether delivery has resumed after the newest pane of the destination.
        self.resumed = route.guarantee is not Guarantee.EXACTLY_ONCE
        self.tried_us = 0  # when `drain` was last called
        self._next_try_us, self._failures = 0, 0

    @property
    def problem(self) -> Problem | None:
        """Why the newest attempt failed; None after a success."""
        return self.problems.get(self.route.key)

    @property
    def must_retry(self) -> bool:
        """Whether `drain` must run again even if no message is due."""
        return not self.resumed or self._failures > 0

    @property
    def backing_off(self) -> bool:
        """Whether the queue waits after a failed attempt."""
        return self.clock() < self._next_try_us

    def drain(self, ended: Callable[[], bool] = lambda: False) -> None:
        """Deliver all due messages, until one fails or `ended` returns True. If the store cannot be
        written, delivered messages are delivered again later.
        """
        self.tried_us, before = self.clock(), self.problem
        try:
            while not ended() and self.step() and self.problem is None:
                pass
            if self._failures and self.problem is before:
                self.problems.over(self.route.key)
            self._failures = 0
        except Fenced:
            raise
        except BaseException as error:
            self._note(error)
            self._back_off(self._pause_us(self._failures))
            self._failures += 1

    def step(self) -> bool:
        """Try one batch of due messages; whether there was any."""
        if self.backing_off or not (self.resumed or self._attempt(self._resume)):
            return False
        due = self.queue.due(self.clock(), self.writer.batch_max)
        if due:
            self._deliver(due)
        return bool(due)

    def _resume(self) -> None:
        """Continue after the newest pane that the destination has."""
        there, sink = self.writer.newest(), self.route.sink or ""
        with self.db.read() as db:
            newest, *_ = count_panes(db, sink)
        if there > newest:
            raise Unavailable(
                f"{self.route.destination.target} has pane {there}, but the newest pane of the "
                f"store is {newest}",
                hint="it belongs to another state folder: move it away, or give the sink another "
                "destination.",
            )
        mark_delivered(self.db, sink, there)
        self.resumed = True

    def _deliver(self, due: Sequence[Message]) -> None:
        if self.route.guarantee is Guarantee.AT_MOST_ONCE:
            self.queue.delivered(due, self.clock())
            failpoint("outbox.marked")
        if not self._attempt(partial(self._write, due), due):
            return
        if self.route.guarantee is not Guarantee.AT_MOST_ONCE:
            failpoint("outbox.delivered")
            self.queue.delivered(due, self.clock())

    def _write(self, due: Sequence[Message]) -> None:
        try:
            self.writer.deliver(due)
        except Conflict:
            # The id of an alert is derived from the alert, so the existing event is the same alert.
            if self.route.sink is not None:
                # Retry with new ids: some panes may be delivered twice, but none is lost.
                with self.db.write() as db:
                    renew_incarnation(db, self.route.sink)
                raise

    # Failures

    def _attempt(self, act: Callable[[], None], due: Sequence[Message] = ()) -> bool:
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
            # The write may be incomplete; resuming reads how much was written.
            self.resumed = self.route.guarantee is not Guarantee.EXACTLY_ONCE
            self._back_off(SINK_PAUSE_US)
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

    def _back_off(self, pause_us: int) -> None:
        self._next_try_us = self.clock() + pause_us

    def _note(self, error: BaseException) -> None:
        self.problems.note(self.route.key, f"{self.route.failure}: {_reason(error)}", error)


def _reason(error: BaseException) -> str:
    plain = str(error) if isinstance(error, Undeliverable | ConnectionError) else ""
    return plain[:SENTENCE_MAX] or reason_of(error)
