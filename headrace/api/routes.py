"""The one table of routes.

The server and the OpenAPI document are both made from `ROUTES`, so they cannot differ. The table
also has the permission that each route needs, which authorization checks. tests/api/test_openapi.py
compares the document with the table, tests/api/test_needs.py requests each route as each role.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headrace.access.operation import Operation
from headrace.api import handlers, rule_handlers, watch_handlers
from headrace.api.access_routes import ACCESS_ROUTES
from headrace.api.body import JSON, NDJSON, OCTET_STREAM
from headrace.api.events import EVENTS_MEDIA, subscribe
from headrace.api.get_route import get_route
from headrace.api.handlers import Api
from headrace.api.needs import JOB, NAMED, OPEN, Need, reads
from headrace.api.page import PAGE_ROUTES
from headrace.api.parameter import Parameter
from headrace.api.resource_routes import RESOURCE_ROUTES
from headrace.api.resources.alerts import AlertRequest, AlertsRequest
from headrace.api.resources.dead_letters import DeadLettersRequest
from headrace.api.resources.rows import LateRequest, ReplayRequest, ViewRequest, WhyRequest
from headrace.api.resources.rules import RuleList, RuleRequest, RulesRequest, RuleVersionsRequest
from headrace.api.resources.status import StatusRequest
from headrace.api.resources.watches import WatchesRequest, WatchList, WatchRequest
from headrace.api.route import STREAM, VIEW, BodyKind, Route
from headrace.api.rule_service import MuteStatus
from headrace.api.service import RebuildResult
from headrace.api.shapes import (
    Acknowledgement,
    AuditRequest,
    AuditResults,
    Liveness,
    MuteRequest,
    Mutes,
    Readiness,
    RetryRequest,
    RetryResult,
    RuleText,
    SendReceipt,
    UnmuteRequest,
    WatchText,
)
from headrace.api.sql_routes import SQL_ROUTES
from headrace.serving.alerts import Alert
from headrace.serving.rules import RuleVersion
from headrace.serving.subscriber import SubscriptionEvent
from headrace.serving.watches import WatchStatus

_SQL = Parameter("sql", "query", str, "SUBSCRIBE TO view or stream …")
_AFTER = Parameter("Last-Event-ID", "header", str, "id of the last event that was received")
_RULE = Parameter("rule", "path", str, "name of a rule")
_WATCH = Parameter("watch", "path", str, "name of a watch")
_PART = Parameter("part", "path", str, "name of a staged part of an import")
_ALERT = Parameter("alert", "path", str, "id of an alert, or the beginning of one")


def _defines(on: str) -> Need:
    return Need(on, Operation.DEFINE)


_EVENTS = (
    BodyKind(JSON, dict[str, Any] | list[dict[str, Any]]),
    BodyKind(NDJSON, str),
    BodyKind("text/plain", str),
    BodyKind(OCTET_STREAM, bytes),
)

# The busiest route is first, because the router matches in this order.
ROUTES: tuple[Route[Api], ...] = (
    Route(
        "POST", "/v1/streams/{stream}/events", "send_events",
        "Append events: one JSON object, an array, or one event per line, optionally gzipped. "
        "Acknowledged when they are durable.",
        handlers.send_events, SendReceipt, parameters=(STREAM,), bodies=_EVENTS,
        needs=Need("stream", Operation.SEND),
    ),
    Route(
        "POST", "/v1/streams/{stream}/imports/{part}", "import_part",
        "Append a part of an import, which `headrace import` has staged beside the stream's log.",
        handlers.import_part, SendReceipt, parameters=(STREAM, _PART),
        needs=Need("stream", Operation.SEND),
    ),
    replace(get_route(ViewRequest), handler=handlers.read_view),
    get_route(LateRequest),
    get_route(WhyRequest),
    get_route(ReplayRequest),
    Route(
        "GET", "/v1/subscribe", "subscribe",
        "The changes of a view by triggers, or the rows of a stream, as server-sent events; "
        "Last-Event-ID resumes.",
        subscribe, SubscriptionEvent, media=EVENTS_MEDIA, parameters=(_SQL, _AFTER),
        needs=reads(NAMED),
    ),
    replace(get_route(StatusRequest), handler=handlers.status),
    get_route(DeadLettersRequest),
    Route(
        "POST", "/v1/views/{view}/rebuild", "rebuild",
        "Recompute a view from its whole history and swap it in.",
        handlers.rebuild, RebuildResult, parameters=(VIEW,),
        needs=Need("view", Operation.REBUILD),
    ),
    Route(
        "POST", "/v1/audit", "audit",
        "Compare the answers of one view, or of all, with a second engine over the same events.",
        handlers.audit, AuditResults, bodies=(BodyKind(JSON, AuditRequest),), body_required=False,
        needs=Need(NAMED, Operation.AUDIT),
    ),
    get_route(RulesRequest),
    Route(
        "POST", "/v1/rules", "add_rules",
        "Add rules while the project is running, or change rules that were added this way.",
        rule_handlers.add_rules, RuleList, bodies=(BodyKind(JSON, RuleText),),
        needs=_defines(NAMED),
    ),
    get_route(RuleRequest),
    get_route(RuleVersionsRequest),
    Route(
        "POST", "/v1/rules/{rule}/disable", "disable_rule",
        "Disable a rule: it raises no more alerts.",
        rule_handlers.disable, RuleVersion, parameters=(_RULE,),
        needs=_defines("rule"),
    ),
    Route(
        "POST", "/v1/rules/{rule}/enable", "enable_rule", "Enable a rule: it raises alerts again.",
        rule_handlers.enable, RuleVersion, parameters=(_RULE,),
        needs=_defines("rule"),
    ),
    Route(
        "POST", "/v1/rules/{rule}/remove", "remove_rule",
        "Remove a rule that was added at run time; its alerts are kept.",
        rule_handlers.remove, RuleVersion, parameters=(_RULE,),
        needs=_defines("rule"),
    ),
    Route(
        "POST", "/v1/rules/{rule}/mute", "mute_rule",
        "Mute a rule, or some of its key values, for a time: alerts are recorded, not notified.",
        rule_handlers.mute, MuteStatus, parameters=(_RULE,), bodies=(BodyKind(JSON, MuteRequest),),
        needs=Need("rule", Operation.MUTE),
    ),
    Route(
        "POST", "/v1/rules/{rule}/unmute", "unmute_rule",
        "Unmute a rule, or some of its key values.",
        rule_handlers.unmute, Mutes, parameters=(_RULE,),
        bodies=(BodyKind(JSON, UnmuteRequest),), body_required=False,
        needs=Need("rule", Operation.MUTE),
    ),
    get_route(WatchesRequest),
    Route(
        "POST", "/v1/watches", "add_watches",
        "Add watches while the project is running, or change watches that were added this way.",
        watch_handlers.add_watches, WatchList, bodies=(BodyKind(JSON, WatchText),),
        needs=_defines(NAMED),
    ),
    get_route(WatchRequest),
    Route(
        "POST", "/v1/watches/{watch}/remove", "remove_watch",
        "Remove a watch that was added at run time; its alerts are kept.",
        watch_handlers.remove, WatchStatus, parameters=(_WATCH,),
        needs=_defines("watch"),
    ),
    get_route(AlertsRequest),
    get_route(AlertRequest),
    Route(
        "POST", "/v1/alerts/{alert}/ack", "acknowledge_alert", "Acknowledge an alert.",
        rule_handlers.acknowledge, Alert, parameters=(_ALERT,),
        bodies=(BodyKind(JSON, Acknowledgement),), body_required=False,
        needs=Need("alert", Operation.ACKNOWLEDGE),
    ),
    Route(
        "POST", "/v1/alerts/retry", "retry_notifications",
        "Retry failed notifications of an alert, of a rule or watch, or all.",
        rule_handlers.retry, RetryResult,
        bodies=(BodyKind(JSON, RetryRequest),), body_required=False,
        needs=Need(JOB, Operation.MUTE),
    ),
    *ACCESS_ROUTES,
    *SQL_ROUTES,
    *RESOURCE_ROUTES,
    Route(
        "GET", "/livez", "alive", "Liveness: whether the process responds.",
        handlers.alive, Liveness,
        needs=OPEN,
    ),
    Route(
        "GET", "/readyz", "ready", "Readiness: whether queries can be answered.",
        handlers.ready, Readiness,
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
GET_REQUESTS = frozenset(route.request_type for route in ROUTES if route.request_type)
