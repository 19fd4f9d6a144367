"""What an observer can ask of a project, wherever it runs.

`run.observatory.observatory.StoreObservatory` answers from the store, the log and the master, for a
running project and for a stopped one; `api.remote_observatory.RemoteObservatory` asks another
process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from headrace.api.observed.about import About
from headrace.api.observed.catalog import Catalog
from headrace.api.observed.epochs import EPOCHS_LISTED, Epochs
from headrace.api.observed.events import Events, EventsWanted, EventTrace
from headrace.api.observed.quality import Quality
from headrace.api.observed.system import System
from headrace.api.observed.topology import Topology
from headrace.compile.lineage import Lineage
from headrace.serving.hearer import Hearing


class Observatory(Protocol):
    def topology(self) -> Topology: ...

    def catalog(self) -> Catalog: ...

    def lineage(self) -> Lineage: ...

    def events(self, stream: str, wanted: EventsWanted) -> Events:
        """The newest events of a stream for which all conditions hold."""

    def event(self, stream: str, partition: int, offset: int) -> EventTrace: ...

    def quality(self) -> Quality: ...

    def epochs(self, stream: str | None = None, limit: int = EPOCHS_LISTED) -> Epochs: ...

    def about(self, view: str) -> About: ...

    def system(self) -> System: ...

    def live(self, topics: Sequence[str], news: Callable[[], None] = lambda: None) -> Hearing:
        """Hear the state of each topic now and after each change; `news` is called when some has
        come. The topics are status, topology, alerts, and view:NAME.
        """
