"""The queue of one action, worked off: take, deliver, mark; what fails is tried again later.

The queue is a table, so a dead receiver costs rows and no memory, and its pauses are its own: other
actions have threads of their own, and other notices of the same one go on. A pause doubles each
time up to `notify.pause_max`; after `notify.attempts_max` attempts a notice has failed, and is kept
with the reason. tests/run/test_deliveries.py drives it with a held clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import structlog

from headrace.compile.plan import ActionPlan
from headrace.core.errors import Fenced, sentence_of
from headrace.core.failpoint import failpoint
from headrace.core.time import Clock, now_us
from headrace.define.settings import NotifySettings
from headrace.run.actions.protocol import Action, Undeliverable
from headrace.serving.database import Database
from headrace.serving.notices import Notice, Queue

log = structlog.get_logger()
TURN_S = 0.1
REASON_MAX = 300


class Deliveries:
    """One action and its queue."""

    def __init__(
        self,
        plan: ActionPlan,
        action: Action,
        db: Database,
        settings: NotifySettings,
        clock: Clock = now_us,
    ) -> None:
        self.plan, self.action, self.settings, self.clock = plan, action, settings, clock
        self.queue = Queue(db, plan)
        self.problem: str | None = None

    def turn(self, stop: threading.Event) -> float:
        """All that is due. If the store cannot be written now, what was delivered comes again."""
        while not stop.is_set() and self.step():
            pass
        return TURN_S

    def drain(self, ended: Callable[[], bool] = lambda: False) -> None:
        """All that is due, until something fails or the time for it has ended."""
        while not ended() and self.step() and self.problem is None:
            pass

    def step(self) -> bool:
        """Try what is due, up to what the action takes at once; whether there was something."""
        due = self.queue.due(self.clock(), self.action.at_once)
        if due:
            self._try(due)
        return bool(due)

    def _try(self, due: Sequence[Notice]) -> None:
        try:
            self.action.deliver(due)
        except Undeliverable as error:
            self._note(error)
            self.queue.failed(due, _reason(error), self.clock())
        except Fenced:
            raise
        except Exception as error:
            self._note(error)
            self._later(due, _reason(error))
        else:
            failpoint("alert.delivered")
            self.queue.delivered(due, self.clock())
            self.problem = None

    def _later(self, due: Sequence[Notice], reason: str) -> None:
        now, settings = self.clock(), self.settings
        for notice in due:
            if notice.attempts + 1 >= settings.attempts_max:
                self.queue.failed([notice], reason, now)
            else:
                pause = settings.pause_us * 2 ** min(notice.attempts, 40)
                self.queue.later([notice], reason, now + min(pause, settings.pause_max_us))

    def _note(self, error: Exception) -> None:
        sentence = f"{self.plan.name} was not notified: {_reason(error)}"
        if self.problem != sentence:
            self.problem = sentence
            log.warning("alert.undelivered", action=self.plan.name, reason=_reason(error))


def _reason(error: Exception) -> str:
    said = str(error) if isinstance(error, Undeliverable | ConnectionError) and str(error) else ""
    return (said or sentence_of(error))[:REASON_MAX]
