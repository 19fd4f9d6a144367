"""`Observatory` of a project whose files are at hand, running or stopped.

Each question is answered by a file of this folder, from the store, the log and the master.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace.api.observed.about import About
from headrace.api.observed.catalog import Catalog
from headrace.api.observed.epochs import EPOCHS_LISTED, Epochs
from headrace.api.observed.events import Events, EventsWanted, EventTrace
from headrace.api.observed.quality import Quality
from headrace.api.observed.system import System
from headrace.api.observed.topology import Topology
from headrace.compile.lineage import Lineage, lineage_of
from headrace.core.errors import Unavailable
from headrace.run.compiling import functions_of
from headrace.run.observatory.about import about_view
from headrace.run.observatory.catalog import catalog_of
from headrace.run.observatory.disk import Growth
from headrace.run.observatory.epochs import epochs_of
from headrace.run.observatory.graph import LastReads
from headrace.run.observatory.quality import quality_of
from headrace.run.observatory.samples import Samples
from headrace.run.observatory.search import search
from headrace.run.observatory.subject import Subject
from headrace.run.observatory.system import system_of
from headrace.run.observatory.topology import topology_of
from headrace.run.observatory.trace import trace
from headrace.serving.hearer import Hearing


class StoreObservatory:
    """Looks at a subject."""

    growth: Growth | None = None
    samples: Samples | None = None

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._reads = LastReads()

    def topology(self) -> Topology:
        return topology_of(self.subject, self.samples, self._reads)

    def catalog(self) -> Catalog:
        about, store = self.subject.project, self.subject.store
        return catalog_of(about, self.subject.deployed(), store, functions_of(about))

    def lineage(self) -> Lineage:
        return lineage_of(self.subject.project, self.subject.store.deployed())

    def events(self, stream: str, wanted: EventsWanted) -> Events:
        return search(self.subject, stream, wanted)

    def event(self, stream: str, partition: int, offset: int) -> EventTrace:
        return trace(self.subject, stream, partition, offset)

    def quality(self) -> Quality:
        return quality_of(self.subject)

    def epochs(self, stream: str | None = None, limit: int = EPOCHS_LISTED) -> Epochs:
        return epochs_of(self.subject, stream, limit)

    def about(self, view: str) -> About:
        return about_view(self.subject, view)

    def system(self) -> System:
        return system_of(self.subject, self.growth)

    def live(self, topics: Sequence[str], news: Callable[[], None] = lambda: None) -> Hearing:
        raise Unavailable(
            "the project does not run, so nothing of it changes",
            hint="start it with `headrace run`.",
        )
