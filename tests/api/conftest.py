"""A real server on a free port, over a real log; what does not touch the log is canned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from headrace.api.client import Remote
from headrace.api.rulebook import RuleStatus
from headrace.api.server import HttpServer
from headrace.api.service import Balance, DeadLetter, Hearing, Status, StreamStatus, ViewStatus
from headrace.audit.trace import LISTED, LeftOut, Replay, Seen, Step, Why
from headrace.core.errors import NotFound
from headrace.core.origin import Origin
from headrace.core.position import Interval
from headrace.core.schema import Column, Schema, Type
from headrace.define.definitions import StreamDefinition
from headrace.define.settings import HttpSettings, LogSettings, Settings
from headrace.ingest.intake import Intake, Receipt
from headrace.log.reader import TopicReader
from headrace.log.topic import Topic
from headrace.serving.answer import Answer, AsOf, ColumnInfo
from headrace.serving.late import LateAnswer, LateWindow
from headrace.serving.ledger import Alert, Numbers, Wanted
from headrace.serving.rules import RuleVersion
from headrace.serving.store import AuditResult
from headrace.serving.watches import WatchStatus

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
STATUS = Status(
    name="shop", state="running", reason="", started_at="2026-01-01T00:00:00Z", url=None,
    streams=[
        StreamStatus(
            "clicks", "http", [9, 9], [7, 8], [5, 6], [5, 6], 3, 3, 0, None,
            Balance(accepted=18, events=10, duplicates=1, dead_letters=2, in_log=4),
        )
    ],
    views=[ViewStatus("visitors", "mergeable", "live", "clicks", 12, 3, 0)],
)  # fmt: skip
DEAD_LETTERS = [DeadLetter(1, 7, "2026-01-01T00:00:00Z", "not JSON", "{oops")]
REBUILT = {"view": "visitors", "generation": 4, "rows": 12, "differences": 0}
AUDITS = [AuditResult("visitors", 12, 1, ("/home: 2 is not 3",), "up to [7, 8]")]
SEEN = Seen("clicks", 0, 3, None, "2026-01-01T00:00:00Z", "{}", True, "why not")
WHY = Why(
    "visitors", {"url": "/home"}, None, 1, [SEEN], [LeftOut("duplicate", 2, [])], True, "yes",
    ANSWER.as_of,
)  # fmt: skip
STEP = Step("epoch", 1, "2026-01-01T00:00:00Z", [7, 8], [5, 6], 1, 0, 0, {"n": 1})
REPLAY = Replay("visitors", {}, {"n": 1}, [STEP], 4, False, "no", ANSWER.as_of)
RULE = RuleStatus(
    "slow", 1, "enabled", "high", False, "2026-01-01T00:00:00Z", "ann", "CREATE RULE slow AS …",
    Numbers(3, 2),
)  # fmt: skip
VERSION = RuleVersion(
    "slow", 1, "CREATE RULE slow AS …", "enabled", False, "2026-01-01T00:00:00Z", "ann"
)
ALERT = Alert(
    "9c1f", "slow", 1, "high", "open", {"user": "ann"}, "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:01Z", "speed",
)  # fmt: skip
WATCH = WatchStatus(
    1, "cheap", "ended", "high", 3, True, "2026-01-01T00:00:00Z", "ann", None, 3,
    "2026-01-02T00:00:00Z", "it had 3 matches", "73fa", "CREATE WATCH cheap AS …",
)  # fmt: skip
METRICS = b"# TYPE headrace_accepted_total counter\nheadrace_accepted_total 18\n"


def definition(**changes: Any) -> StreamDefinition:
    columns = (Column("user", Type("STRING"), nullable=False), Column("ms", Type("BIGINT")))
    return replace(StreamDefinition("clicks", Schema(columns), Origin("shop.sql", 1)), **changes)


class Rulebook:
    """Answers as it was told; tests/api/test_ruling.py has one with a store."""

    def rules(self) -> list[RuleStatus]:
        return [RULE]

    def rule(self, name: str) -> RuleStatus:
        return RULE

    def history(self, name: str) -> list[RuleVersion]:
        return [VERSION]

    def alerts(self, wanted: Wanted) -> list[Alert]:
        return [ALERT]

    def alert(self, id: str) -> Alert:
        return ALERT


class Watchbook:
    """Answers as it was told; tests/api/test_watches.py has one with a store."""

    def watches(self, state: str | None = None) -> list[WatchStatus]:
        return [WATCH]

    def watch(self, name: str) -> WatchStatus:
        return WATCH


@dataclass
class Shop:
    """A service with one stream. `fail` is raised by all calls; `calls` are what was asked."""

    folder: Path = Path()
    intake: Intake | None = None
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    fail: Exception | None = None
    during_submit: Callable[[Future[Receipt]], Future[Receipt]] = lambda future: future
    able: tuple[bool, str] = (True, "")
    rulebook: Rulebook = field(default_factory=Rulebook)
    watchbook: Watchbook = field(default_factory=Watchbook)

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

    def view(
        self,
        name: str,
        keys: Mapping[str, str] | None = None,
        *,
        since: str | None = None,
        until: str | None = None,
        limit: int | None = None,
    ) -> Answer:
        self._asked("view", name, keys, since, until, limit)
        return ANSWER

    def late(
        self,
        name: str,
        keys: Mapping[str, str] | None = None,
        *,
        since: str | None = None,
        until: str | None = None,
        limit: int | None = None,
    ) -> LateAnswer:
        self._asked("late", name, keys, since, until, limit)
        return LATENESS

    def sql(self, text: str, limit: int | None = None) -> Answer:
        self._asked("sql", text, limit)
        return ANSWER

    def subscribe(
        self, text: str, after: str | None = None, news: Callable[[], None] = lambda: None
    ) -> Hearing:
        self._asked("subscribe", text, after)
        raise NotFound("there is no view")

    def status(self) -> Status:
        self._asked("status")
        return STATUS

    def ready(self) -> tuple[bool, str]:
        self._asked("ready")
        return self.able

    def dead_letters(self, stream: str, limit: int = 100) -> list[DeadLetter]:
        self._asked("dead_letters", stream, limit)
        return DEAD_LETTERS

    def rebuild(self, view: str) -> dict[str, Any]:
        self._asked("rebuild", view)
        return REBUILT

    def audit(self, view: str | None = None) -> list[AuditResult]:
        self._asked("audit", view)
        return AUDITS

    def why(
        self,
        view: str,
        keys: Mapping[str, str] | None = None,
        *,
        window: str | None = None,
        limit: int = LISTED,
    ) -> Why:
        self._asked("why", view, keys, window, limit)
        return WHY

    def replay(
        self,
        view: str,
        keys: Mapping[str, str] | None = None,
        *,
        window: str | None = None,
        limit: int = LISTED,
    ) -> Replay:
        self._asked("replay", view, keys, window, limit)
        return REPLAY

    def metrics(self) -> bytes:
        self._asked("metrics")
        return METRICS

    def logged(self) -> list[bytes]:
        """All records that the log has, in order within a partition."""
        reader = TopicReader(self.folder)
        return [
            record
            for partition, end in enumerate(reader.end().offsets)
            for block in reader.blocks(partition, Interval(0, end))
            for record in block.records()
        ]


@pytest.fixture(scope="session")
def standing() -> Iterator[tuple[Shop, HttpServer]]:
    """One server for all tests, because a start and a stop take longer than most of them."""
    shop = Shop()
    http = HttpSettings(port=0, body_bytes_max=BODY_BYTES_MAX, waiting_max=2)
    server = HttpServer(shop, http)
    server.start()
    yield shop, server
    server.stop()


@pytest.fixture
def shop(standing: tuple[Shop, HttpServer], tmp_path: Path) -> Iterator[Shop]:
    """The shop with nothing asked of it yet, and a log of the test's own."""
    shop, folder = standing[0], tmp_path / "clicks"
    topic = Topic.open(folder, 1, segment_bytes_max=1 << 22)
    log = LogSettings(free_bytes_min=0, event_bytes_max=EVENT_BYTES_MAX)
    intake = Intake(definition(id="event_id"), topic, settings=Settings("shop", log=log))
    shop.__init__(folder, intake)  # type: ignore[misc]
    yield shop
    topic.close()


@pytest.fixture
def server(standing: tuple[Shop, HttpServer], shop: Shop) -> HttpServer:
    return standing[1]


@pytest.fixture
def client(server: HttpServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, trust_env=False, verify=False, timeout=10) as made:
        yield made


@pytest.fixture
def remote(server: HttpServer) -> Iterator[Remote]:
    with Remote(server.url) as made:
        yield made


def condition(response: httpx.Response) -> str:
    """The condition of an error, after its shape was checked."""
    error = response.json()
    assert set(error) == {"condition", "message", "detail", "hint", "origin"}
    assert error["message"][:1].islower() or error["message"][:1] in "/'"
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-request-id"]
    return str(error["condition"])
