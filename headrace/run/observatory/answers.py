"""Who answers which question about a project whose files are at hand, running or stopped.

What is observed is answered by a file of this folder, from the store, the log and the master.
tests/run/test_observatory.py compares the table with that of the routes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headrace.api.get_request import GetRequest
from headrace.api.resources.catalog import CatalogRequest
from headrace.api.resources.dead_letters import DeadLettersRequest
from headrace.api.resources.epochs import EpochsRequest
from headrace.api.resources.events import EventRequest, EventsRequest
from headrace.api.resources.lineage import LineageRequest
from headrace.api.resources.quality import QualityRequest
from headrace.api.resources.rules import (
    RuleHistory,
    RuleHistoryRequest,
    RuleList,
    RuleRequest,
    RulesRequest,
)
from headrace.api.resources.system import SystemRequest
from headrace.api.resources.topology import TopologyRequest
from headrace.api.resources.view_detail import ViewDetailRequest
from headrace.api.resources.watches import WatchesRequest, WatchList, WatchRequest
from headrace.api.rule_service import RuleStatus
from headrace.compile.lineage import Lineage, lineage_of
from headrace.run.observatory.about import about_view
from headrace.run.observatory.catalog import catalog_of
from headrace.run.observatory.dead_letters import dead_letters_of
from headrace.run.observatory.epochs import epochs_of
from headrace.run.observatory.quality import quality_of
from headrace.run.observatory.search import search
from headrace.run.observatory.subject import Subject
from headrace.run.observatory.system import system_of
from headrace.run.observatory.topology import topology
from headrace.run.observatory.trace import trace
from headrace.serving.watches import WatchStatus


def _lineage(subject: Subject, asked: LineageRequest) -> Lineage:
    return lineage_of(subject.project, subject.store.deployed())


def _rules(subject: Subject, asked: RulesRequest) -> RuleList:
    return RuleList(subject.rule_service.rules())


def _rule(subject: Subject, asked: RuleRequest) -> RuleStatus:
    return subject.rule_service.rule(asked.rule)


def _history(subject: Subject, asked: RuleHistoryRequest) -> RuleHistory:
    return RuleHistory(subject.rule_service.history(asked.rule))


def _watches(subject: Subject, asked: WatchesRequest) -> WatchList:
    return WatchList(subject.watch_service.watches(asked.state))


def _watch(subject: Subject, asked: WatchRequest) -> WatchStatus:
    return subject.watch_service.watch(asked.watch)


ANSWERS: Mapping[type[GetRequest[Any]], Callable[[Subject, Any], Any]] = {
    TopologyRequest: topology,
    CatalogRequest: catalog_of,
    LineageRequest: _lineage,
    QualityRequest: quality_of,
    EpochsRequest: epochs_of,
    ViewDetailRequest: about_view,
    SystemRequest: system_of,
    DeadLettersRequest: dead_letters_of,
    EventsRequest: search,
    EventRequest: trace,
    RulesRequest: _rules,
    RuleRequest: _rule,
    RuleHistoryRequest: _history,
    WatchesRequest: _watches,
    WatchRequest: _watch,
}
