"""The definitions of a project, each with its origin. `compile` checks them against each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from headrace.core.origin import Origin
from headrace.core.pattern import Node, RowsPerMatch, Selection, Skip
from headrace.core.rule import Coupling, Severity
from headrace.core.schema import Schema
from headrace.core.subscription import Guarantee, Subscription
from headrace.core.time import HOUR, MINUTE
from headrace.define.rules import DecisionRules

if TYPE_CHECKING:  # destinations are read with tokens, and checked against a project
    from headrace.destination.kinds import Destination

MATCHED = "_matched"  # the name of what a pattern has found, in the SELECT over it


@dataclass(frozen=True, slots=True)
class Watermark:
    """Event time is `column`; an event more than `delay_us` behind the newest before it is late.

    An event dated more than `ahead_us` after its arrival does not move the watermark. A partition
    from which nothing has come for `idle_us` does not hold it back.
    """

    column: str
    delay_us: int
    ahead_us: int = HOUR
    idle_us: int = MINUTE


@dataclass(frozen=True, slots=True)
class PaceDefinition:
    """How often speed takes a stream's events, and what happens when it cannot keep up.

    None stands for the project's setting; without `lag_events_max` the log takes all.
    """

    trigger_us: int | None = None
    epoch_events_max: int | None = None
    overload: str = "slow"  # slow: the producer waits; shed random, shed oldest: speed samples
    lag_events_max: int | None = None

    @property
    def sheds(self) -> str | None:
        """`random` or `oldest`, if the stream sheds."""
        return self.overload.removeprefix("shed ") if self.overload != "slow" else None


@dataclass(frozen=True, slots=True)
class StreamDefinition:
    """`CREATE STREAM name (columns) WITH (…)`: events that come in from outside."""

    name: str
    schema: Schema
    origin: Origin
    watermark: Watermark | None = None
    source: str = "http"  # a row of ingest.connector.SOURCES; HTTP may always send
    format: str = "json"  # json or csv
    key: str | None = None  # the column whose value chooses the partition
    id: str | None = (
        None  # the JSON field that identifies duplicates; need not be a declared column
    )
    partitions: int | None = None
    pace: PaceDefinition = PaceDefinition()
    options: dict[str, str] = field(default_factory=dict)  # the connector's own options


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """`CREATE TABLE name (columns) USING csv|parquet|json LOCATION '…'`: given, not derived."""

    name: str
    schema: Schema
    format: str
    location: str
    options: dict[str, str]
    origin: Origin


@dataclass(frozen=True, slots=True)
class ProcessorCall:
    """`SELECT * FROM name(TABLE(stream) PARTITION BY keys)`."""

    name: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NamedExpression:
    """An SQL expression with a name: of a measure, or of the variable of a condition."""

    name: str
    sql: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class MatchDefinition:
    """`MATCH_RECOGNIZE ( … )`, and `select`: the SELECT over what it makes, from `MATCHED`."""

    keys: tuple[str, ...]
    order: tuple[NamedExpression, ...]
    measures: tuple[NamedExpression, ...]
    rows: RowsPerMatch
    skip: Skip
    node: Node
    within_us: int | None
    selection: Selection
    subsets: tuple[tuple[str, tuple[str, ...]], ...]
    conditions: tuple[NamedExpression, ...]
    select: str = ""


@dataclass(frozen=True, slots=True)
class ThresholdDefinition:
    """`count(…) >= n WITHIN INTERVAL … PER keys`; `counted` is SQL whose different values count."""

    keys: tuple[str, ...]
    least: int
    within_us: int
    counted: NamedExpression | None = None


@dataclass(frozen=True, slots=True)
class QueryDefinition:
    """A name for a SELECT: `CREATE VIEW name AS …`, or `CREATE STREAM name AS …` for stateless
    steps, or `CREATE RULES name ON …`.

    `query` is the text of the SELECT exactly as written and `query_origin` the place of its first
    character, so that an error of any parser can be brought back to the user's file.
    """

    name: str
    kind: str  # "view" or "stream"
    query: str
    origin: Origin
    query_origin: Origin
    # What `query` gives goes through one of these.
    processor: ProcessorCall | None = None
    match: MatchDefinition | None = None
    threshold: ThresholdDefinition | None = None
    rules: DecisionRules | None = None  # decide on each row that `query` gives

    @property
    def makes_rows(self) -> bool:
        """Whether the columns that come out are not those of `query`."""
        return any((self.processor, self.match, self.threshold))


@dataclass(frozen=True, slots=True)
class SinkDefinition:
    """`CREATE SINK name FROM view INTO FILE '…' | INTO STREAM …`: a view's panes go out."""

    name: str
    subscription: Subscription
    destination: Destination
    guarantee: Guarantee
    origin: Origin
    verb: ClassVar[str] = "writes to"

    @property
    def said(self) -> str:
        return f"sink '{self.name}'"

    @property
    def destinations(self) -> tuple[Destination, ...]:
        return (self.destination,)

    @property
    def needs_id(self) -> bool:
        return self.guarantee is Guarantee.EXACTLY_ONCE


@dataclass(frozen=True, slots=True)
class _NotifierDefinition:
    """A statement whose SELECT notifies of each row. `text` is the whole statement as written,
    `query` and `query_origin` are its SELECT.
    """

    name: str
    text: str
    query: str
    origin: Origin
    query_origin: Origin
    severity: Severity = Severity.MEDIUM
    destinations: tuple[Destination, ...] = ()
    word: ClassVar[str]
    verb: ClassVar[str] = "notifies"
    needs_id: ClassVar[bool] = True

    @property
    def said(self) -> str:
        return f"{self.word} '{self.name}'"


@dataclass(frozen=True, slots=True)
class RuleDefinition(_NotifierDefinition):
    """`CREATE RULE name AS SELECT … NOTIFY …`: each row of the SELECT is an alert."""

    suppress_us: int | None = None
    per: tuple[str, ...] = ()  # the columns by which alerts suppress each other
    coupling: Coupling = Coupling.IMMEDIATE
    corrections: bool = False
    word: ClassVar[str] = "rule"


@dataclass(frozen=True, slots=True)
class WatchDefinition(_NotifierDefinition):
    """`CREATE WATCH name AS SELECT … UNTIL … NOTIFY …`: each row of the SELECT is a match, until
    the watch ends: at a timestamp, after a number of matches, or with a match for which `when` is
    true.
    """

    until_us: int | None = None
    matches_max: int | None = None
    when: NamedExpression | None = None
    word: ClassVar[str] = "watch"


Sender = SinkDefinition | RuleDefinition | WatchDefinition  # of messages to destinations
Definition = StreamDefinition | TableDefinition | QueryDefinition | Sender
