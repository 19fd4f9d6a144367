"""A real server on a free port, over a real log; what does not touch the log is canned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from headrace.access.access import Access
from headrace.access.caller import OWNER, Caller
from headrace.access.object import Object, object_of
from headrace.api.client import RemoteService
from headrace.api.get_request import A, GetRequest, response_type
from headrace.api.resources.balance import Balance
from headrace.api.resources.catalog import Catalog, CatalogColumn, CatalogStream, FunctionInfo
from headrace.api.resources.dead_letters import DeadLetter, DeadLetters
from headrace.api.resources.epochs import Epochs, GenerationInfo
from headrace.api.resources.events import (
    AffectedRow,
    CommitRecord,
    EventPage,
    EventRecord,
    EventTrace,
)
from headrace.api.resources.quality import LatenessBucket, NullShare, Quality, StreamQuality
from headrace.api.resources.query import QueryPlan
from headrace.api.resources.rules import RuleList, RuleVersions
from headrace.api.resources.status import ProjectStatus, StreamStatus, ViewStatus
from headrace.api.resources.system import (
    DiskUsage,
    ProcessInfo,
    SettingInfo,
    SparkInfo,
    System,
)
from headrace.api.resources.topology import Edge, Node, Topology
from headrace.api.resources.view_detail import ViewDetail
from headrace.api.resources.watches import WatchList
from headrace.api.rule_service import RuleStatus
from headrace.api.server import HttpServer
from headrace.api.service import RebuildResult, Sender
from headrace.audit.trace import Replay, ReplayStep, SkippedRecords, TracedRecord, Why
from headrace.compile.lineage import ColumnLineage, ColumnRef, Lineage
from headrace.core.errors import HeadraceError, NotFound
from headrace.core.origin import Origin
from headrace.core.position import Interval
from headrace.core.schema import Column, Schema, Type
from headrace.define.definitions import StreamDefinition
from headrace.define.settings import HttpSettings, LogSettings, Settings
from headrace.define.stream_subscription import subscribed_name
from headrace.ingest.futures import failed_future, running_future, when_all_ended
from headrace.ingest.intake import Intake, Outcome, Receipt, Requests
from headrace.log.embedded.reader import EmbeddedReader
from headrace.log.embedded.writer import EmbeddedWriter
from headrace.serving.alerts import Alert, AlertCounts, AlertGroup, Alerts
from headrace.serving.answer import Answer, AsOf, ColumnInfo
from headrace.serving.late import LateAnswer, LateWindow
from headrace.serving.rules import RuleVersion
from headrace.serving.store import AuditResult
from headrace.serving.subscriber import OpenSubscription, Subscriber, SubscriptionEvent
from headrace.serving.watches import WatchStatus
from tests.access.users import bearer, open_access

BODY_BYTES_MAX, EVENT_BYTES_MAX = 1 << 20, 64 << 10
EVENTS = "/v1/streams/clicks/events"

ANSWER = Answer(
    rows=[{"url": "/home", "hour": {"start": "2026-01-01T00:00:00Z"}, "visitors": 2}],
    as_of={"clicks": AsOf(3, [5, 6], [7, 8], "2026-01-01T00:00:00Z", None, 120)},
    columns={"url": ColumnInfo("STRING", True), "visitors": ColumnInfo("BIGINT", False, 0.02)},
    truncated=True,
)
LATENESS = LateAnswer(
    "visitors",
    [LateWindow({"url": "/home", "hour": None}, 5, 2, 61_000.0, 40_000.5, 1, 3, 1)],
    ANSWER.as_of,
)
STATUS = ProjectStatus(
    name="shop", state="running", reason="", started_at="2026-01-01T00:00:00Z", url=None,
    streams=[
        StreamStatus(
            "clicks", "http", [9, 9], [7, 8], [5, 6], [5, 6], 3, 3, 0, None,
            Balance(accepted=18, events=10, duplicates=1, dead_letters=2, in_log=4),
        )
    ],
    views=[ViewStatus("visitors", "mergeable", "live", "clicks", 12, 3, 0)],
)  # fmt: skip
DEAD_LETTERS = DeadLetters([DeadLetter(1, 7, "2026-01-01T00:00:00Z", "not JSON", "{oops")], 9)
REBUILT = RebuildResult("visitors", 4, 12, 0)
AUDITS = [AuditResult("visitors", 12, 1, ("/home: 2 is not 3",), "up to [7, 8]")]
SEEN = TracedRecord("clicks", 0, 3, None, "2026-01-01T00:00:00Z", "{}", True, "why not")
WHY = Why(
    "visitors", {"url": "/home"}, None, 1, [SEEN], [SkippedRecords("duplicate", 2, [])], True,
    "yes", ANSWER.as_of,
)  # fmt: skip
STEP = ReplayStep("epoch", 1, "2026-01-01T00:00:00Z", [7, 8], [5, 6], 1, 0, 0, {"n": 1})
REPLAY = Replay("visitors", {}, {"n": 1}, [STEP], 4, False, "no", ANSWER.as_of)
RULE = RuleStatus(
    "slow", 1, "enabled", "high", False, "2026-01-01T00:00:00Z", "ann", "CREATE RULE slow AS …",
    AlertCounts(3, 2),
)  # fmt: skip
VERSION = RuleVersion(
    "slow", 1, "CREATE RULE slow AS …", "enabled", False, "2026-01-01T00:00:00Z", "ann"
)
ALERT = Alert(
    "9c1f", "slow", 1, "high", "open", {"user": "ann"}, "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:01Z", "speed",
)  # fmt: skip
FOUND_ALERTS = Alerts([ALERT], 2, [AlertGroup("slow", "high", 2, "2026-01-01T00:00:01Z")])
WATCH = WatchStatus(
    1, "cheap", "ended", "high", 3, True, "2026-01-01T00:00:00Z", "ann", None, 3,
    "2026-01-02T00:00:00Z", "it had 3 matches", "73fa", "CREATE WATCH cheap AS …",
)  # fmt: skip
PLANNED = QueryPlan("store", ["visitors"], "SELECT 1", "SCAN visitors")
TOPOLOGY = Topology(
    "2026-01-01T00:00:00Z",
    [Node("view:visitors", "view", "visitors", "bad", "boom", 3.5, detail={"rows": 2}, cause="x")],
    [Edge("speed:clicks", "view:visitors", 3.5)],
)
CATALOG = Catalog(
    "shop",
    [CatalogStream("clicks", "declared", [CatalogColumn("user", "STRING")], "shop.sql:1")],
    [], [], [], [], [], [FunctionInfo("count", "aggregate")], ["SELECT"],
)  # fmt: skip
LINEAGE = Lineage(
    [ColumnLineage("visitors", "url", [ColumnRef("clicks", "url")], True)],
    {"clicks": ["visitors"]},
)
RECORD = EventRecord(
    0, 3, "2026-01-01T00:00:00Z", "event", None, "2026-01-01T00:00:00Z", True, 1.5, "e1", "ada",
    {"user": "ada"}, "{}",
)  # fmt: skip
FOUND = EventPage([RECORD], "3,0", 12, 40)
TRACE = EventTrace(
    RECORD, CommitRecord(1, "2026-01-01T00:00:00Z"), True, None,
    [AffectedRow("visitors", {"url": "/home"}, None)], [ALERT],
)  # fmt: skip
QUALITY = Quality(
    "2026-01-01T00:00:00Z",
    [
        StreamQuality(
            "clicks", 5, [LatenessBucket(0, 5)], 0, 7, 8, 1, 2, [], [], 0,
            [NullShare("ms", 1, 0.2, True)],
            Balance(8, 5, 1, 2, 0, 0),
        )
    ],
)  # fmt: skip
EPOCHS = Epochs([], [GenerationInfo("clicks", 1, [5, 6], 11, "2026-01-01T00:00:00Z", [])], 7, 1)
ABOUT = ViewDetail(
    "visitors", "mergeable", "SELECT 1", "shop.sql:9", "why", [], [], [], AUDITS[0], None, None,
    ["clicks"], [],
)  # fmt: skip
SYSTEM = System(
    "2026-01-01T00:00:00Z",
    ProcessInfo(1, 2, 3, 4.5),
    SparkInfo(False, "local[*]", None, "2g", None, None),
    DiskUsage("/state", 1, 2, 3, {"log": 3}, None, None),
    {"headrace": "0.1.0"},
    [SettingInfo("http.port", "8080", "8080", "port", False)],
)
ANSWERS: list[Any] = [
    ANSWER, LATENESS, WHY, REPLAY, STATUS, TOPOLOGY, CATALOG, LINEAGE, QUALITY, EPOCHS, ABOUT,
    SYSTEM, FOUND, TRACE, DEAD_LETTERS, RuleList([RULE]), RULE, RuleVersions([VERSION]),
    WatchList([WATCH]), WATCH, FOUND_ALERTS, ALERT,
]  # fmt: skip
METRICS = b"# TYPE headrace_accepted_total counter\nheadrace_accepted_total 18\n"


def definition(**changes: Any) -> StreamDefinition:
    columns = (Column("user", Type("STRING"), nullable=False), Column("ms", Type("BIGINT")))
    return replace(StreamDefinition("clicks", Schema(columns), Origin("shop.sql", 1)), **changes)


IMPORTED = Receipt(3, 1, 0, ((0, 7, 10),))


@dataclass
class Shop:
    """A service with one stream. `fail` is raised by all calls; `calls` are what was asked."""

    folder: Path = Path()
    intake: Intake | None = None
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    fail: Exception | None = None
    during_submit: Callable[[Future[Receipt]], Future[Receipt]] = lambda future: future
    able: tuple[bool, str] = (True, "")

    def _asked(self, *call: Any) -> None:
        self.calls.append(call)
        if self.fail:
            raise self.fail

    def submit(self, stream: str, records: Sequence[bytes]) -> Future[Receipt]:
        self._asked("submit", stream, len(records))
        if stream != "clicks":
            raise NotFound(f"there is no stream '{stream}'", hint="did you mean 'clicks'?")
        assert self.intake is not None
        return self.during_submit(self.intake.submit(records))

    def sender(self, stream: str) -> Sender:
        if stream != "clicks":
            raise NotFound(f"there is no stream '{stream}'")
        return self._submit_all

    def _submit_all(self, requests: Requests) -> Future[list[Outcome]]:
        receipts = [self._submitted(records) for records in requests]
        ended: Future[list[Outcome]] = running_future()
        when_all_ended(
            receipts, lambda _: ended.set_result([r.exception() or r.result() for r in receipts])
        )
        return ended

    def _submitted(self, records: Sequence[bytes]) -> Future[Receipt]:
        try:
            return self.submit("clicks", records)
        except HeadraceError as error:
            return failed_future(error)

    def import_part(self, stream: str, part: str) -> Receipt:
        self._asked("import_part", stream, part)
        return IMPORTED

    def row(self, name: str, keys: Mapping[str, str | None]) -> Answer | None:
        return None

    def sql(
        self, text: str, limit: int | None = None, id: str | None = None, caller: Caller = OWNER
    ) -> Answer:
        self._asked("sql", text, limit, *([id] if id else []))
        return ANSWER

    def cancel(self, id: str, caller: Caller = OWNER) -> bool:
        self._asked("cancel", id)
        return True

    def query_plan(self, text: str, caller: Caller = OWNER) -> QueryPlan:
        self._asked("query_plan", text)
        return PLANNED

    def ask(self, question: GetRequest[A]) -> A:
        """Answers as it was told; tests/run/test_observatory.py asks a store."""
        self._asked(question)
        return next(answer for answer in ANSWERS if type(answer) is response_type(type(question)))

    def live(
        self, topics: Sequence[str], news: Callable[[], None] = lambda: None
    ) -> OpenSubscription:
        self._asked("live", list(topics))
        subscriber = Subscriber(10, news, lambda subscriber: None)
        raw = msgspec.Raw(b'{"state":"running"}')
        last = SubscriptionEvent("end", {"reason": "the project is shutting down"})
        subscriber.offer(
            [
                SubscriptionEvent("status", raw, "7"),
                SubscriptionEvent("view:visitors", {"rows": []}, "8"),
                last,
            ]
        )
        return subscriber

    def subscribed(self, text: str, caller: Caller) -> Object:
        return object_of("view", subscribed_name(text))

    def subscribe(
        self,
        text: str,
        after: str | None = None,
        news: Callable[[], None] = lambda: None,
        caller: Caller = OWNER,
    ) -> OpenSubscription:
        self._asked("subscribe", text, after)
        raise NotFound("there is no view")

    def ready(self) -> tuple[bool, str]:
        self._asked("ready")
        return self.able

    def rebuild(self, view: str) -> RebuildResult:
        self._asked("rebuild", view)
        return REBUILT

    def audit(self, view: str | None = None) -> list[AuditResult]:
        self._asked("audit", view)
        return AUDITS

    def metrics(self) -> bytes:
        self._asked("metrics")
        return METRICS

    def logged(self) -> list[bytes]:
        """All records that the log has, in order within a partition."""
        reader = EmbeddedReader(self.folder)
        return [
            record
            for partition, end in enumerate(reader.end().offsets)
            for block in reader.blocks(partition, Interval(0, end))
            for record in block.records()
        ]


@pytest.fixture(scope="session")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Access, str]]:
    """The shop's users, and the token of ann, who may do everything."""
    access, token = open_access(tmp_path_factory.mktemp("admin"))
    yield access, token
    access.close()


@pytest.fixture(scope="session")
def access(admin: tuple[Access, str]) -> Access:
    return admin[0]


@pytest.fixture(scope="session")
def token(admin: tuple[Access, str]) -> str:
    return admin[1]


@pytest.fixture(scope="session")
def standing(access: Access) -> Iterator[tuple[Shop, HttpServer]]:
    """One server for all tests, because a start and a stop take longer than most of them."""
    shop = Shop()
    http = HttpSettings(port=0, body_bytes_max=BODY_BYTES_MAX, waiting_max=2)
    server = HttpServer(shop, http, access)
    server.start()
    yield shop, server
    server.stop()


@pytest.fixture
def shop(standing: tuple[Shop, HttpServer], tmp_path: Path) -> Iterator[Shop]:
    """The shop with nothing asked of it yet, and a log of the test's own."""
    shop, folder = standing[0], tmp_path / "clicks"
    topic = EmbeddedWriter.open(folder, 1, segment_bytes_max=1 << 22)
    log = LogSettings(free_bytes_min=0, event_bytes_max=EVENT_BYTES_MAX)
    intake = Intake(definition(id="event_id"), topic, settings=Settings("shop", log=log))
    shop.__init__(folder, intake)  # type: ignore[misc]
    yield shop
    topic.close()


@pytest.fixture
def server(standing: tuple[Shop, HttpServer], shop: Shop) -> HttpServer:
    return standing[1]


@pytest.fixture
def stranger(server: HttpServer) -> Iterator[httpx.Client]:
    """One who has no token."""
    with httpx.Client(base_url=server.url, trust_env=False, verify=False, timeout=10) as made:
        yield made


@pytest.fixture
def client(stranger: httpx.Client, token: str) -> httpx.Client:
    stranger.headers.update(bearer(token))
    return stranger


@pytest.fixture
def remote(server: HttpServer, token: str) -> Iterator[RemoteService]:
    with RemoteService(server.url, token) as made:
        yield made


def condition(response: httpx.Response) -> str:
    """The condition of an error, after its shape was checked."""
    error = response.json()
    assert set(error) == {"condition", "message", "detail", "hint", "origin"}
    assert error["message"][:1].islower() or error["message"][:1] in "/'"
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-request-id"]
    return str(error["condition"])
