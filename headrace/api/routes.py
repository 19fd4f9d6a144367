"""The one table of routes.

What the server answers and what the OpenAPI document says are both made from `ROUTES`, so that
neither of them can say something else than the other. What a route needs is said here too, and
asked by the door.
tests/api/test_openapi.py compares the document with the table, tests/api/test_needs.py asks each
route as each role.
"""

from __future__ import annotations

from typing import Any

from headrace.access.operation import Operation
from headrace.api import handlers, ruling, watching
from headrace.api.access_routes import ACCESS_ROUTES
from headrace.api.body import JSON, NDJSON, ONE
from headrace.api.events import EVENTS_MEDIA, subscribe
from headrace.api.handlers import Api
from headrace.api.needs import JOB, NAMED, OPEN, Need, reads
from headrace.api.observing import OBSERVING
from headrace.api.page import PAGE_ROUTES
from headrace.api.querying import QUERYING
from headrace.api.route import LIMIT, STREAM, VIEW, BodyKind, Parameter, Route
from headrace.api.rulebook import Muted, RuleStatus
from headrace.api.searching import SEARCHING
from headrace.api.service import DeadLetters, Rebuilt
from headrace.api.shapes import (
    Accepted,
    Acknowledgement,
    Alive,
    AuditQuestion,
    Audits,
    Limit,
    MuteQuestion,
    Mutes,
    Ready,
    Retried,
    RetryQuestion,
    RuleHistory,
    Rules,
    RuleText,
    StatusReport,
    UnmuteQuestion,
    Watches,
    WatchText,
)
from headrace.audit.trace import Replay, Why
from headrace.serving.answer import Answer
from headrace.serving.hearer import Heard
from headrace.serving.late import LateAnswer
from headrace.serving.ledger import Alert, Alerts
from headrace.serving.rules import RuleVersion
from headrace.serving.watches import WatchStatus

_KEYS = Parameter("keys", "query", dict[str, str], "any key column and the value it must have")
_NULL = Parameter("null", "query", str, "key columns that must be null, with commas between")
_FROM = Parameter("from", "query", str, "time at or after which windows start")
_TO = Parameter("to", "query", str, "time before which windows start")
_ORDER = Parameter("order", "query", str, "columns with commas between; -name: largest first")
_WINDOW = Parameter("window", "query", str, "time at which the row's window starts")
_LISTED = Parameter("limit", "query", Limit, "events or steps listed at most; all are counted")
_SQL = Parameter("sql", "query", str, "SUBSCRIBE TO view or stream …")
_AFTER = Parameter("Last-Event-ID", "header", str, "id of the last event that was heard")
_RULE = Parameter("rule", "path", str, "name of a rule")
_WATCH = Parameter("watch", "path", str, "name of a watch")
_STATE = Parameter("state", "query", str, "only watches in this state: active or ended")
_ALERT = Parameter("alert", "path", str, "id of an alert, or the beginning of one")
_WANTED = (
    Parameter("rule", "query", str, "only alerts of this rule"),
    Parameter("state", "query", str, "only alerts in this state"),
    Parameter("missed", "query", bool, "only alerts that batch alone has found"),
    Parameter("withdrawn", "query", bool, "only alerts that batch has not found"),
    Parameter("each", "query", Limit, "alerts of each rule at most, the gravest rules first"),
    Parameter("before", "query", int, "only alerts older than the one of this number"),
    LIMIT,
)


def _defines(on: str) -> Need:
    return Need(on, Operation.DEFINE)


_EVENTS = (
    BodyKind(JSON, dict[str, Any] | list[dict[str, Any]]),
    BodyKind(NDJSON, str),
    BodyKind("text/plain", str),
    BodyKind(ONE, bytes),
)

# The busiest route is first, because the router looks at them in this order.
ROUTES: tuple[Route[Api], ...] = (
    Route(
        "POST", "/v1/streams/{stream}/events", "send_events",
        "Append events: one JSON object, an array, or one event a line; gzip is welcome. "
        "Answered when they are durable.",
        handlers.send_events, Accepted, parameters=(STREAM,), bodies=_EVENTS,
        needs=Need("stream", Operation.SEND),
    ),
    Route(
        "GET", "/v1/views/{view}", "read_view",
        "The rows of a view, by key values and window range.",
        handlers.read_view, Answer,
        parameters=(VIEW, _KEYS, _NULL, _FROM, _TO, _ORDER, LIMIT),
        needs=reads("view"),
    ),
    Route(
        "GET", "/v1/views/{view}/late", "late",
        "How late the events of each window were, and which generation absorbed them.",
        handlers.late, LateAnswer, parameters=(VIEW, _KEYS, _NULL, _FROM, _TO, LIMIT),
        needs=reads("view"),
    ),
    Route(
        "GET", "/v1/views/{view}/why", "why",
        "The events behind one row of a view, and those left out, with the reason.",
        handlers.why, Why, parameters=(VIEW, _KEYS, _NULL, _WINDOW, _LISTED),
        needs=reads("view"),
    ),
    Route(
        "GET", "/v1/views/{view}/replay", "replay",
        "How one row of a view came about, epoch by epoch and generation by generation.",
        handlers.replay, Replay, parameters=(VIEW, _KEYS, _NULL, _WINDOW, _LISTED),
        needs=reads("view"),
    ),
    Route(
        "GET", "/v1/subscribe", "subscribe",
        "The changes of a view by triggers, or the rows of a stream, as server-sent events; "
        "Last-Event-ID resumes.",
        subscribe, Heard, media=EVENTS_MEDIA, parameters=(_SQL, _AFTER),
        needs=reads(NAMED),
    ),
    Route(
        "GET", "/v1/status", "status",
        "How the project, its streams and its views are doing.",
        handlers.status, StatusReport,
        needs=reads(NAMED),
    ),
    Route(
        "GET", "/v1/streams/{stream}/dead-letters", "dead_letters",
        "The newest events that could not be read, with the reason and their bytes.",
        handlers.dead_letters, DeadLetters, parameters=(STREAM, LIMIT),
        needs=reads("stream"),
    ),
    Route(
        "POST", "/v1/views/{view}/rebuild", "rebuild",
        "Recompute a view from its whole history and swap it in.",
        handlers.rebuild, Rebuilt, parameters=(VIEW,),
        needs=Need("view", Operation.REBUILD),
    ),
    Route(
        "POST", "/v1/audit", "audit",
        "Compare the answers of one view, or of all, with a second engine over the same events.",
        handlers.audit, Audits, bodies=(BodyKind(JSON, AuditQuestion),), body_required=False,
        needs=Need(NAMED, Operation.AUDIT),
    ),
    Route(
        "GET", "/v1/rules", "rules", "All rules, and their numbers.",
        ruling.rules, Rules,
        needs=reads(NAMED),
    ),
    Route(
        "POST", "/v1/rules", "add_rules",
        "Add rules while the project runs, or change rules that were added so.",
        ruling.add_rules, Rules, bodies=(BodyKind(JSON, RuleText),),
        needs=_defines(NAMED),
    ),
    Route(
        "GET", "/v1/rules/{rule}", "rule", "One rule, with its text and numbers.",
        ruling.rule, RuleStatus, parameters=(_RULE,),
        needs=reads("rule"),
    ),
    Route(
        "GET", "/v1/rules/{rule}/history", "rule_history",
        "All versions of a rule, and who made each.",
        ruling.history, RuleHistory, parameters=(_RULE,),
        needs=reads("rule"),
    ),
    Route(
        "POST", "/v1/rules/{rule}/disable", "disable_rule", "Raise no more alerts of a rule.",
        ruling.disable, RuleVersion, parameters=(_RULE,),
        needs=_defines("rule"),
    ),
    Route(
        "POST", "/v1/rules/{rule}/enable", "enable_rule", "Raise alerts of a rule again.",
        ruling.enable, RuleVersion, parameters=(_RULE,),
        needs=_defines("rule"),
    ),
    Route(
        "POST", "/v1/rules/{rule}/remove", "remove_rule",
        "Remove a rule that was added while the project ran; its alerts stay.",
        ruling.remove, RuleVersion, parameters=(_RULE,),
        needs=_defines("rule"),
    ),
    Route(
        "POST", "/v1/rules/{rule}/mute", "mute_rule",
        "Record alerts of a rule, or of some values of it, and notify nobody for a time.",
        ruling.mute, Muted, parameters=(_RULE,), bodies=(BodyKind(JSON, MuteQuestion),),
        needs=Need("rule", Operation.MUTE),
    ),
    Route(
        "POST", "/v1/rules/{rule}/unmute", "unmute_rule",
        "Notify alerts of a rule, or of some values of it, again.",
        ruling.unmute, Mutes, parameters=(_RULE,),
        bodies=(BodyKind(JSON, UnmuteQuestion),), body_required=False,
        needs=Need("rule", Operation.MUTE),
    ),
    Route(
        "GET", "/v1/watches", "watches", "All watches, and how those that ended did.",
        watching.watches, Watches, parameters=(_STATE,),
        needs=reads(NAMED),
    ),
    Route(
        "POST", "/v1/watches", "add_watches",
        "Add watches while the project runs, or change watches that were added so.",
        watching.add_watches, Watches, bodies=(BodyKind(JSON, WatchText),),
        needs=_defines(NAMED),
    ),
    Route(
        "GET", "/v1/watches/{watch}", "watch", "One watch, with its text and its matches.",
        watching.watch, WatchStatus, parameters=(_WATCH,),
        needs=reads("watch"),
    ),
    Route(
        "POST", "/v1/watches/{watch}/remove", "remove_watch",
        "Remove a watch that was added while the project ran; its alerts stay.",
        watching.remove, WatchStatus, parameters=(_WATCH,),
        needs=_defines("watch"),
    ),
    Route(
        "GET", "/v1/alerts", "alerts",
        "Alerts, the newest first, and how many there are of each rule.",
        ruling.alerts, Alerts, parameters=_WANTED,
        needs=reads(NAMED),
    ),
    Route(
        "GET", "/v1/alerts/{alert}", "alert",
        "One alert, with what became of its notifications.",
        ruling.alert, Alert, parameters=(_ALERT,),
        needs=reads("alert"),
    ),
    Route(
        "POST", "/v1/alerts/{alert}/ack", "acknowledge_alert", "Say that an alert was seen.",
        ruling.acknowledge, Alert, parameters=(_ALERT,),
        bodies=(BodyKind(JSON, Acknowledgement),), body_required=False,
        needs=Need("alert", Operation.ACKNOWLEDGE),
    ),
    Route(
        "POST", "/v1/alerts/retry", "retry_notifications",
        "Try notifications again that have failed, of an alert, of a rule or watch, or all.",
        ruling.retry, Retried, bodies=(BodyKind(JSON, RetryQuestion),), body_required=False,
        needs=Need(JOB, Operation.MUTE),
    ),
    *ACCESS_ROUTES,
    *QUERYING,
    *OBSERVING,
    *SEARCHING,
    Route(
        "GET", "/livez", "alive", "Whether the process lives.",
        handlers.alive, Alive,
        needs=OPEN,
    ),
    Route(
        "GET", "/readyz", "ready", "Whether questions can be answered.",
        handlers.ready, Ready,
        needs=OPEN,
    ),
    Route(
        "GET", "/metrics", "metrics", "Counters and gauges for Prometheus.",
        handlers.metrics, media="text/plain",
        needs=reads(JOB),
    ),
    Route(
        "GET", "/openapi.json", "openapi", "This table as an OpenAPI document.",
        handlers.openapi, dict[str, Any],
        needs=OPEN,
    ),
    *PAGE_ROUTES,
)  # fmt: skip
