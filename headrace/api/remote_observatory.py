"""What is observed of a project that runs in another process, asked over HTTP.

tests/api/test_observing.py sends each method there and back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from headrace.api.hearing import RemoteHearing
from headrace.api.observed.about import About
from headrace.api.observed.catalog import Catalog
from headrace.api.observed.epochs import EPOCHS_LISTED, Epochs
from headrace.api.observed.events import Events, EventsWanted, EventTrace
from headrace.api.observed.quality import Quality
from headrace.api.observed.system import System
from headrace.api.observed.topology import Topology
from headrace.compile.lineage import Lineage


class RemoteObservatory:
    """`ask` sends a request and decodes the answer; `hear` opens a connection that stays."""

    def __init__(self, ask: Callable[..., Any], hear: Callable[..., RemoteHearing]) -> None:
        self._ask, self._hear = ask, hear

    def topology(self) -> Topology:
        found: Topology = self._ask(Topology, "GET", "/v1/topology")
        return found

    def catalog(self) -> Catalog:
        found: Catalog = self._ask(Catalog, "GET", "/v1/catalog")
        return found

    def lineage(self) -> Lineage:
        found: Lineage = self._ask(Lineage, "GET", "/v1/lineage")
        return found

    def events(self, stream: str, wanted: EventsWanted) -> Events:
        found: Events = self._ask(Events, "GET", _events(stream), params=_parameters(wanted))
        return found

    def event(self, stream: str, partition: int, offset: int) -> EventTrace:
        path = f"{_events(stream)}/{partition}/{offset}"
        found: EventTrace = self._ask(EventTrace, "GET", path)
        return found

    def quality(self) -> Quality:
        found: Quality = self._ask(Quality, "GET", "/v1/quality")
        return found

    def epochs(self, stream: str | None = None, limit: int = EPOCHS_LISTED) -> Epochs:
        params = {"limit": limit} | ({"stream": stream} if stream else {})
        found: Epochs = self._ask(Epochs, "GET", "/v1/epochs", params=params)
        return found

    def about(self, view: str) -> About:
        found: About = self._ask(About, "GET", f"/v1/views/{quote(view, safe='')}/about")
        return found

    def system(self) -> System:
        found: System = self._ask(System, "GET", "/v1/system")
        return found

    def live(self, topics: Sequence[str], news: Callable[[], None] = lambda: None) -> RemoteHearing:
        """One connection, whose `take` waits for what comes; `news` is not needed for it."""
        return self._hear("/v1/live", {"topics": ",".join(topics)})


def _events(stream: str) -> str:
    return f"/v1/streams/{quote(stream, safe='')}/events"


def _parameters(wanted: EventsWanted) -> list[tuple[str, str]]:
    said = {
        "limit": wanted.limit,
        "before": wanted.before,
        "partition": wanted.partition,
        "offset": wanted.offset,
        "id": wanted.id,
        "key": wanted.key,
        "from": wanted.since,
        "to": wanted.until,
        "status": wanted.status,
    }
    pairs = [(name, str(value)) for name, value in said.items() if value is not None]
    return pairs + [("field", f"{name}:{value}") for name, value in wanted.fields]
