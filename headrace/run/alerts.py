"""The rules of a running project: one thread looks for alerts, and one for each action delivers.

After each commit of an epoch or a generation the rules are looked for; what a look finds is saved
with its notifications before anything is delivered. A rule that fails says so and is looked for
again; it stops neither the others nor any view. tests/run/test_alerts.py drives it without Spark,
tests/run/test_alerts_killed.py kills it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from headrace.compile.plan import ActionPlan, Plan, RulePlan
from headrace.core.deadline import Deadline
from headrace.core.errors import BadSetting, Fenced
from headrace.core.problems import Problems, reason_of
from headrace.core.report import Report
from headrace.core.rule import Kind
from headrace.core.time import Clock, now_us
from headrace.core.worker import Worker, problems_of
from headrace.define.actions import load_actions
from headrace.define.paths import output_file
from headrace.define.project import Project
from headrace.define.settings import NotifySettings
from headrace.run.actions.call import CallAction
from headrace.run.actions.email import EmailAction
from headrace.run.actions.file import FileAction
from headrace.run.actions.protocol import Action
from headrace.run.actions.stream import StreamAction
from headrace.run.actions.webhook import SECRET, WebhookAction, secrets_of
from headrace.run.deliveries import Deliveries
from headrace.run.targets import Submit
from headrace.serving.database import Database
from headrace.serving.notices import forget_other_actions
from headrace.serving.raising import Lookout

TURN_S, STOP_S_MAX = 0.1, 15.0


class Alerts:
    """All rules of a project and their actions."""

    def __init__(
        self,
        plan: Plan,
        project: Project,
        db: Database,
        submit: Submit,
        report: Report,
        clock: Clock = now_us,
    ) -> None:
        self.plan, self.db, self.clock = plan, db, clock
        self.lookout = Lookout(db, clock)
        self.deliveries = [
            Deliveries(action, made, db, project.settings.notify, clock)
            for action, made in actions_of(plan, project, submit)
        ]
        self._problems = Problems("rule", report)
        self._held: frozenset[str] = frozenset()
        self._stop = threading.Event()
        self._looking = Worker("rules", self._turn, self._stop, report)
        self._delivering = [
            Worker(f"action {d.plan.name}", partial(d.turn, self._stop), self._stop, report)
            for d in self.deliveries
        ]

    @property
    def problems(self) -> dict[str, str]:
        failing = {f"action {d.plan.name}": d.problem for d in self.deliveries if d.problem}
        return problems_of([self._looking, *self._delivering]) | self._problems | failing

    def start(self, hold: Collection[str] = ()) -> None:
        """Start; the rules to hold are not looked for until they are released."""
        self._held = frozenset(hold)
        if self.plan.rules:
            for worker in (self._looking, *self._delivering):
                worker.start()

    def release(self) -> None:
        """The plan's views have been built: look for all rules, and end what waits for an action
        that none of them names. Not before, because a plan that cannot be built is taken back.
        """
        self._held = frozenset()
        forget_other_actions(self.db, self.plan.rules, self.clock())

    def halt(self) -> None:
        """Raise what there is, and end; what waits is delivered by whoever continues the queues."""
        self._stop.set()
        deadline = Deadline(STOP_S_MAX)
        for worker in (self._looking, *self._delivering):
            worker.join(deadline.left_s)
        self.look()

    def stop(self) -> None:
        """Raise what there is, deliver for no longer than STOP_S_MAX, and end; the rest waits."""
        self.halt()
        deadline = Deadline(STOP_S_MAX)
        for deliveries, worker in zip(self.deliveries, self._delivering, strict=True):
            # An action that hangs or fails is not waited for a second time.
            if not worker.alive and deliveries.problem is None:
                self._deliver_last(deliveries, deadline)

    def _deliver_last(self, deliveries: Deliveries, deadline: Deadline) -> None:
        """A failure is noted and no more, because the rest of the project is to be stopped too."""
        name = deliveries.plan.name
        try:
            deliveries.drain(deadline.passed)
        except Exception as error:
            sentence = f"{name} was not notified: {reason_of(error)}"
            self._problems.note(f"action {name}", sentence, error)

    def drain(self, ended: Callable[[], bool] = lambda: False) -> None:
        """One look for each rule, and all that is due until an action fails."""
        self.look()
        for deliveries in self.deliveries:
            deliveries.drain(ended)

    def look(self) -> None:
        for rule in self.plan.rules:
            if rule.name not in self._held:
                self._look(rule)

    def _turn(self) -> float:
        self.look()
        return TURN_S

    def _look(self, rule: RulePlan) -> None:
        key = f"rule {rule.name}"
        try:
            self.lookout.look(rule)
            self._problems.over(key)
        except Fenced:
            self._stop.set()
        except Exception as error:
            self._problems.note(key, f"rule '{rule.name}' failed: {reason_of(error)}", error)


def actions_of(plan: Plan, project: Project, submit: Submit) -> list[tuple[ActionPlan, Action]]:
    """What the rules notify; refused here if it cannot work with the settings there are."""
    named = {action.name: action for rule in plan.rules for action in rule.actions}
    plans = list(named.values())
    functions = project.functions_file if any(p.kind == Kind.CALL for p in plans) else None
    bodies = load_actions(functions)
    return [(plan, _action(plan, project, submit, bodies)) for plan in plans]


def action_of(plan: ActionPlan, project: Project, submit: Submit) -> Action:
    """What one notification does; refused here if it cannot work with the settings there are."""
    functions = project.functions_file if plan.kind == Kind.CALL else None
    return _action(plan, project, submit, load_actions(functions))


def _action(
    plan: ActionPlan, project: Project, submit: Submit, bodies: dict[str, Callable[..., Any]]
) -> Action:
    notify = project.settings.notify
    match Kind(plan.kind):
        case Kind.WEBHOOK:
            return WebhookAction(plan.target, notify, _secrets(plan, notify))
        case Kind.STREAM:
            return StreamAction(plan, submit)
        case Kind.EMAIL:
            return EmailAction(plan.target, notify)
        case Kind.CALL:
            return CallAction(bodies[plan.target])
        case Kind.FILE:
            return FileAction(output_file(project, plan.target, "an action"))


def _secrets(plan: ActionPlan, notify: NotifySettings) -> tuple[str, ...]:
    secrets = secrets_of(notify)
    if not secrets:
        raise BadSetting(
            f"a rule notifies '{plan.target}', but there is no secret to sign it with",
            hint=f"set {SECRET} in the environment, or notify.secret in headrace.toml.",
        )
    return secrets
