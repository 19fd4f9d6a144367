"""The rules of a running project: one thread looks for alerts, and one for each action delivers.

After each commit of an epoch or a generation the rules are looked for; what a look finds is saved
with its notifications before anything is delivered. A rule that fails says so and is looked for
again; it stops neither the others nor any view. tests/run/test_alerts.py drives it without Spark,
tests/run/test_alerts_killed.py kills it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import structlog

from headrace.compile.plan import ActionPlan, Plan, RulePlan
from headrace.core.errors import BadSetting, Fenced, HeadraceError
from headrace.core.report import Report
from headrace.core.rule import Kind
from headrace.core.time import Clock, now_us
from headrace.define.actions import load_actions
from headrace.define.project import Project
from headrace.run.actions.call import CallAction
from headrace.run.actions.email import EmailAction
from headrace.run.actions.file import FileAction
from headrace.run.actions.protocol import Action
from headrace.run.actions.stream import StreamAction
from headrace.run.actions.webhook import WebhookAction
from headrace.run.deliveries import Deliveries
from headrace.run.targets import Submit
from headrace.serving.notices import forget_other_actions
from headrace.serving.raising import Lookout
from headrace.serving.sqlite import Sqlite

log = structlog.get_logger()
TURN_S, STOP_S_MAX = 0.1, 15.0
SECRET = "HEADRACE_NOTIFY_SECRET"


class Alerts:
    """All rules of a project and their actions."""

    def __init__(
        self,
        plan: Plan,
        project: Project,
        db: Sqlite,
        submit: Submit,
        report: Report,
        clock: Clock = now_us,
    ) -> None:
        self.plan, self.report = plan, report
        self.lookout = Lookout(db, clock)
        self.deliveries = [
            Deliveries(action, made, db, project.settings.notify, clock)
            for action, made in actions_of(plan, project, submit)
        ]
        if plan.rules:
            forget_other_actions(db, plan.rules, clock())
        self._failed: dict[str, str] = {}
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, name="rules", daemon=True),
            *(
                threading.Thread(target=d.run, args=(self._stop,), name=d.plan.name, daemon=True)
                for d in self.deliveries
            ),
        ]

    @property
    def problems(self) -> dict[str, str]:
        found = {f"rule {name}": sentence for name, sentence in self._failed.items()}
        failing = {f"action {d.plan.name}": d.problem for d in self.deliveries if d.problem}
        return found | failing

    def start(self) -> None:
        if self.plan.rules:
            for thread in self._threads:
                thread.start()

    def stop(self) -> None:
        """Raise and deliver what there is, and end; what cannot be delivered now waits."""
        self._stop.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(STOP_S_MAX)
        self.look()
        for deliveries, thread in zip(self.deliveries, self._threads[1:], strict=True):
            # An action that hangs or fails is not waited for a second time.
            if not thread.is_alive() and deliveries.problem is None:
                deliveries.drain()

    def drain(self) -> None:
        """One look for each rule, and all that is due until an action fails."""
        self.look()
        for deliveries in self.deliveries:
            deliveries.drain()

    def look(self) -> None:
        for rule in self.plan.rules:
            self._look(rule)

    def _run(self) -> None:
        while not self._stop.wait(TURN_S):
            self.look()

    def _look(self, rule: RulePlan) -> None:
        try:
            self.lookout.look(rule)
            self._failed.pop(rule.name, None)
        except Fenced:
            self._stop.set()
        except Exception as error:
            message = error.message if isinstance(error, HeadraceError) else repr(error)
            sentence = f"rule '{rule.name}' failed: {message}"
            if self._failed.get(rule.name) != sentence:
                self._failed[rule.name] = sentence
                log.error("rule.failed", rule=rule.name, exc_info=error)
                self.report("problem", {"message": sentence})


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
            return WebhookAction(plan.target, notify, _secret(plan, notify.secret))
        case Kind.STREAM:
            return StreamAction(plan, submit)
        case Kind.EMAIL:
            return EmailAction(plan.target, notify)
        case Kind.CALL:
            return CallAction(bodies[plan.target])
        case Kind.FILE:
            return FileAction(project.folder / plan.target)


def _secret(plan: ActionPlan, said: str) -> str:
    secret = os.environ.get(SECRET, said)
    if not secret:
        raise BadSetting(
            f"a rule notifies '{plan.target}', but there is no secret to sign it with",
            hint=f"set {SECRET} in the environment, or notify.secret in headrace.toml.",
        )
    return secret
