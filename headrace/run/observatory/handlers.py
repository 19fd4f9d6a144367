"""The handlers of GET requests about a running or stopped project, by type of request.

Each handler is a function of this folder and reads from the store, the log and the master.
tests/run/test_observatory.py compares the table with that of the routes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import asdict

from headrace.api.get_request import GetRequest
from headrace.api.resources.alerts import AlertRequest, AlertsRequest
from headrace.api.resources.catalog import CatalogRequest
from headrace.api.resources.dead_letters import DeadLettersRequest
from headrace.api.resources.epochs import EpochsRequest
from headrace.api.resources.events import EventRequest, EventsRequest
from headrace.api.resources.lineage import LineageRequest
from headrace.api.resources.quality import QualityRequest
from headrace.api.resources.rows import LateRequest, ReplayRequest, ViewRequest, WhyRequest
from headrace.api.resources.rules import (
    RuleList,
    RuleRequest,
    RulesRequest,
    RuleVersions,
    RuleVersionsRequest,
)
from headrace.api.resources.status import ProjectStatus, StatusRequest
from headrace.api.resources.system import SystemRequest
from headrace.api.resources.topology import TopologyRequest
from headrace.api.resources.view_detail import ViewDetailRequest
from headrace.api.resources.watches import WatchesRequest, WatchList, WatchRequest
from headrace.api.rule_service import RuleStatus
from headrace.compile.lineage import Lineage, lineage_of
from headrace.run.observatory.catalog import catalog_of
from headrace.run.observatory.dead_letters import dead_letters_of
from headrace.run.observatory.epochs import epochs_of
from headrace.run.observatory.observed_project import ObservedProject
from headrace.run.observatory.quality import quality_of
from headrace.run.observatory.rows import late_windows, replay, view_rows, why
from headrace.run.observatory.search import search
from headrace.run.observatory.system import system_of
from headrace.run.observatory.topology import topology
from headrace.run.observatory.trace import trace
from headrace.run.observatory.view_detail import view_detail
from headrace.serving.alerts import Alert, AlertFilter, Alerts
from headrace.serving.watches import WatchStatus


def _status(service: ObservedProject, request: StatusRequest) -> ProjectStatus:
    return service.status()


def _lineage(service: ObservedProject, request: LineageRequest) -> Lineage:
    return lineage_of(service.project, service.store.deployed())


def _rules(service: ObservedProject, request: RulesRequest) -> RuleList:
    return RuleList(service.rule_service.rules())


def _rule(service: ObservedProject, request: RuleRequest) -> RuleStatus:
    return service.rule_service.rule(request.rule)


def _history(service: ObservedProject, request: RuleVersionsRequest) -> RuleVersions:
    return RuleVersions(service.rule_service.history(request.rule))


def _watches(service: ObservedProject, request: WatchesRequest) -> WatchList:
    return WatchList(service.watch_service.watches(request.state))


def _watch(service: ObservedProject, request: WatchRequest) -> WatchStatus:
    return service.watch_service.watch(request.watch)


def _alerts(service: ObservedProject, request: AlertsRequest) -> Alerts:
    return service.rule_service.alerts(AlertFilter(**asdict(request)))


def _alert(service: ObservedProject, request: AlertRequest) -> Alert:
    return service.rule_service.alert(request.alert)


HANDLERS: Mapping[type[GetRequest[Any]], Callable[[ObservedProject, Any], Any]] = {
    StatusRequest: _status,
    ViewRequest: view_rows,
    LateRequest: late_windows,
    WhyRequest: why,
    ReplayRequest: replay,
    TopologyRequest: topology,
    CatalogRequest: catalog_of,
    LineageRequest: _lineage,
    QualityRequest: quality_of,
    EpochsRequest: epochs_of,
    ViewDetailRequest: view_detail,
    SystemRequest: system_of,
    DeadLettersRequest: dead_letters_of,
    EventsRequest: search,
    EventRequest: trace,
    RulesRequest: _rules,
    RuleRequest: _rule,
    RuleVersionsRequest: _history,
    WatchesRequest: _watches,
    WatchRequest: _watch,
    AlertsRequest: _alerts,
    AlertRequest: _alert,
}
