"""Every setting of `headrace.toml`, with its default and its meaning. Only `name` must be given.

The dataclasses below are the one list of settings: the parser, the error messages and the test that
compares docs/settings.md all use their fields. tests/define/test_settings.py checks each default
and each refusal.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.core.errors import BadProject
from headrace.core.origin import Origin
from headrace.define.setting import Documented, TextForm, documented_of, read_into
from headrace.define.setting import setting as _setting

HOST = TextForm(r"(\*\.)?[\w-]+(\.[\w-]+)*|[0-9a-f:]+", "host names without scheme and port")
# The address may have a password, so no message repeats it.
POSTGRES_URL = TextForm(
    r"postgres(ql)?://.+", "a database URL such as postgresql://user@host/database"
)
RECIPIENT = TextForm(r"([^@\s<>,;]+@)?[^@\s<>,;]+\.[^@\s<>,;]+", "e-mail addresses, or domains")
FORMATS, LEVELS = ("json", "console"), ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True)
class HttpSettings:
    host: str = _setting("127.0.0.1", "address that the HTTP server listens on")
    allowed_hosts: tuple[str, ...] = _setting(
        [],
        "names by which clients reach it, such as a proxy's; *.example.com is all below",
        form=HOST,
    )
    port: int = _setting(8080, "port of the HTTP server; 0 takes a free one", least=0)
    body_bytes_max: int = _setting(16 << 20, "largest request body, after decompression", least=1)
    waiting_max: int = _setting(256, "ingest requests in progress before 429", least=1)
    connections_max: int = _setting(
        2_000, "connections at a time; of those without a known caller the oldest give way", least=1
    )
    connections_per_address_max: int = _setting(
        1_000, "connections at a time from one address", least=1
    )
    header_timeout_us: int = _setting(
        "10 seconds", "time for the head of a request, a TLS handshake included", duration=True
    )
    body_timeout_us: int = _setting("60 seconds", "time for the body of a request", duration=True)
    tls_cert: str = _setting("", "file of the certificate for HTTPS, relative to the project")
    tls_key: str = _setting("", "file of its private key, relative to the project")


@dataclass(frozen=True, slots=True)
class AccessSettings:
    queries_max: int = _setting(64, "queries of one user in progress before 429", least=1)
    bytes_per_second_max: int = _setting(
        256 << 20, "bytes that one user may send a second, on average, before 429", least=1
    )
    session_life_us: int = _setting("12 hours", "how long a browser stays logged in", duration=True)
    session_idle_us: int = _setting(
        "1 hour", "time without a request after which a browser is logged out", duration=True
    )
    token_life_max_us: int = _setting("365 days", "longest life of a new token", duration=True)
    failures_max: int = _setting(
        30, "failed authentications of one address in a minute before 429", least=1
    )


@dataclass(frozen=True, slots=True)
class LogSettings:
    partitions: int = _setting(2, "partitions of a stream that does not say", least=1)
    segment_bytes_max: int = _setting(64 << 20, "size at which a segment is sealed", least=4096)
    event_bytes_max: int = _setting(1 << 20, "largest single event", least=1)
    retention_us: int = _setting(
        "1 day", "how long archived segments are kept in the log", duration=True
    )
    free_bytes_min: int = _setting(256 << 20, "free disk below which ingest answers 507", least=0)
    format: str = _setting(
        "json", "how the project's own headrace.log is written: json or console", among=FORMATS
    )
    level: str = _setting(
        "info", "the least that goes to headrace.log: debug, info, warning or error", among=LEVELS
    )


@dataclass(frozen=True, slots=True)
class StoreSettings:
    url: str = _setting(
        "",
        "the store's database: postgresql://user@host/database; empty: a file of the state",
        form=POSTGRES_URL,
    )
    schema: str = _setting(
        "", "the schema of that database, made at the first start; empty: the project's name"
    )


@dataclass(frozen=True, slots=True)
class DedupSettings:
    ids_max: int = _setting(
        200_000,
        "ids of a stream that are held in memory; all others are looked up on disk",
        least=1,
    )


@dataclass(frozen=True, slots=True)
class SparkSettings:
    master: str = _setting("local[*]", "Spark master: local[*], spark://host:port, yarn, k8s://…")
    memory: str = _setting("2g", "memory of the Spark driver")
    shuffle_partitions: int = _setting(2, "partitions of a shuffle", least=1)
    vectorised: bool = _setting(
        True, "whether views are computed in DuckDB, within the tasks, where that is certified"
    )
    conf: dict[str, str] = _setting({}, "any other Spark setting, by its own name")


@dataclass(frozen=True, slots=True)
class SpeedSettings:
    trigger_us: int = _setting("500 ms", "time between the starts of two epochs", duration=True)
    epoch_events_max: int = _setting(1_000_000, "events in one epoch at most", least=1)
    group_us: int = _setting(
        "10 seconds", "time after which a group of epochs is closed", duration=True
    )
    catch_up_events: int = _setting(
        500_000, "backlog above which a start catches up by batch first", least=1
    )
    rebase_events_max: int = _setting(
        500_000,
        "events since the boundary that carried views are folded again from at most",
        least=0,
    )


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    interval_us: int = _setting("5 seconds", "time between two archive steps", duration=True)
    step_events_max: int = _setting(4_000_000, "events in one archive step at most", least=1)
    compact_files: int = _setting(32, "small files in a day before they are compacted", least=2)


@dataclass(frozen=True, slots=True)
class BatchSettings:
    interval_us: int = _setting("60 seconds", "time between two builds of a view", duration=True)
    compare_events_max: int = _setting(
        2_000_000,
        "events that speed has answered for and that a build computes again in Spark SQL at most, "
        "to compare both; of more, the kernel computes the build too",
        least=0,
    )


@dataclass(frozen=True, slots=True)
class PatternSettings:
    steps_max: int = _setting(
        200_000, "steps of a pattern's search before a key is ignored", least=1
    )


@dataclass(frozen=True, slots=True)
class WatchdogSettings:
    epoch_us: int = _setting(
        "1 minute", "time after which an epoch that has not ended is a problem", duration=True
    )
    archive_us: int = _setting(
        "2 minutes",
        "time after which an archive step, a cleanup of the log and the master or the reload of a "
        "table that has not ended is one",
        duration=True,
    )
    build_us: int = _setting(
        "30 minutes", "time after which a build that has not ended is one", duration=True
    )
    compile_us: int = _setting(
        "2 minutes",
        "time after which compiling or the start of Spark that has not ended is one",
        duration=True,
    )
    wait_us: int = _setting(
        "10 seconds", "time after which events that wait for speed are a warning", duration=True
    )


@dataclass(frozen=True, slots=True)
class TablesSettings:
    interval_us: int = _setting(
        "10 seconds", "time between two checks of the tables' files", duration=True
    )


@dataclass(frozen=True, slots=True)
class QuerySettings:
    seconds_max: float = _setting(30.0, "time that an ad-hoc query may take", least=0.1)
    rows_max: int = _setting(10_000, "rows that an ad-hoc query may return", least=1)
    bytes_max: int = _setting(64 << 20, "size of an ad-hoc query's answer", least=1024)
    text_max: int = _setting(
        20_000, "characters in an ad-hoc query, or a rule or watch that is added", least=1
    )
    memory: str = _setting("1g", "memory of each process that runs ad-hoc queries on Spark")
    engine_memory: str = _setting("1GB", "memory of the engine that answers queries over views")
    kept_rows_max: int = _setting(
        2_000_000, "rows of views that are kept in memory between reads", least=0
    )
    workers: int = _setting(
        2,
        "processes that run ad-hoc queries on Spark, each started when those before are busy; one "
        "user has all but one of them at most",
        least=2,
    )
    waiting_max: int = _setting(
        32, "ad-hoc queries that wait for one of these processes before 429", least=0
    )
    idle_us: int = _setting(
        "5 minutes", "time after which a process that no query needs ends; one stays", duration=True
    )
    scan_max: int = _setting(
        1_000_000, "records of a stream that one search for events reads", least=1
    )


@dataclass(frozen=True, slots=True)
class SubscribeSettings:
    connections_max: int = _setting(100, "subscriptions open at a time", least=1)
    events_kept: int = _setting(10_000, "panes of a view that can be resumed from", least=1)
    waiting_max: int = _setting(
        10_000, "panes that wait for a slow reader before it is cut off", least=1
    )
    rows_max: int = _setting(100_000, "rows of a view that can be watched", least=1)
    linger_us: int = _setting(
        "60 seconds", "how long a view without subscribers can be resumed", duration=True
    )


@dataclass(frozen=True, slots=True)
class AlertsSettings:
    keep_us: int = _setting(
        "365 days", "how long alerts stay in the ledger once all is settled", duration=True
    )


@dataclass(frozen=True, slots=True)
class LiveSettings:
    connections_max: int = _setting(500, "readers of live topics at a time", least=1)
    waiting_max: int = _setting(
        64, "events that wait for a slow reader of live topics before it is cut off", least=1
    )
    interval_us: int = _setting(
        "250 ms", "least time between two events of a live topic", duration=True
    )
    rows_max: int = _setting(1_000, "rows of a view that a live topic sends", least=1)


@dataclass(frozen=True, slots=True)
class NotifySettings:
    hosts: tuple[str, ...] = _setting([], "hosts that rules may notify by webhook")
    private: bool = _setting(
        False, "whether a webhook may be in a private network, and be plain http"
    )
    secret: str = _setting("", "what webhooks are signed with; HEADRACE_NOTIFY_SECRET overrides it")
    secret_before: str = _setting(
        "",
        "the secret before, signed with too while receivers change theirs; "
        "HEADRACE_NOTIFY_SECRET_BEFORE overrides it",
    )
    connect_us: int = _setting("5 seconds", "time to reach a webhook or mail server", duration=True)
    answer_us: int = _setting(
        "10 seconds", "time that a webhook or mail server may be idle", duration=True
    )
    answer_bytes_max: int = _setting(65_536, "largest answer of a webhook that is read", least=0)
    attempts_max: int = _setting(
        12, "attempts to deliver a notification before it has failed", least=1
    )
    pause_us: int = _setting(
        "1 second",
        "pause after the first failed attempt; each next is twice as long",
        duration=True,
    )
    pause_max_us: int = _setting("5 minutes", "longest pause between two attempts", duration=True)
    smtp_host: str = _setting("", "mail server for NOTIFY EMAIL")
    smtp_port: int = _setting(587, "port of the mail server", least=1)
    smtp_starttls: bool = _setting(True, "whether mail goes over TLS; without it there is no login")
    smtp_user: str = _setting(
        "", "login of the mail server; HEADRACE_SMTP_PASSWORD has the password"
    )
    smtp_from: str = _setting("", "sender of mails")
    recipients: tuple[str, ...] = _setting(
        [],
        "addresses or domains that rules and watches added at run time may notify by e-mail, "
        "besides the addresses in the project's files",
        form=RECIPIENT,
    )


@dataclass(frozen=True, slots=True)
class TraceSettings:
    endpoint: str = _setting("", "where traces are sent by OTLP over HTTP; none are without it")


@dataclass(frozen=True, slots=True)
class LineageSettings:
    file: str = _setting("", "file of the output folder that events of OpenLineage are appended to")
    url: str = _setting(
        "", "where events of OpenLineage are posted; its host is reached as webhooks are"
    )


@dataclass(frozen=True, slots=True)
class Settings:
    name: str = field(metadata={"meaning": "the project's name", "text": ""})
    state: str = _setting(".headrace", "folder of the project's state, relative to the project")
    output: str = _setting("out", "folder of the project that sinks, rules and watches write to")
    http: HttpSettings = field(default_factory=HttpSettings)
    access: AccessSettings = field(default_factory=AccessSettings)
    log: LogSettings = field(default_factory=LogSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    dedup: DedupSettings = field(default_factory=DedupSettings)
    spark: SparkSettings = field(default_factory=SparkSettings)
    speed: SpeedSettings = field(default_factory=SpeedSettings)
    archive: ArchiveSettings = field(default_factory=ArchiveSettings)
    batch: BatchSettings = field(default_factory=BatchSettings)
    pattern: PatternSettings = field(default_factory=PatternSettings)
    watchdog: WatchdogSettings = field(default_factory=WatchdogSettings)
    tables: TablesSettings = field(default_factory=TablesSettings)
    query: QuerySettings = field(default_factory=QuerySettings)
    subscribe: SubscribeSettings = field(default_factory=SubscribeSettings)
    alerts: AlertsSettings = field(default_factory=AlertsSettings)
    live: LiveSettings = field(default_factory=LiveSettings)
    notify: NotifySettings = field(default_factory=NotifySettings)
    trace: TraceSettings = field(default_factory=TraceSettings)
    lineage: LineageSettings = field(default_factory=LineageSettings)


def documented() -> Iterator[Documented]:
    """Each setting as (dotted key, default as the file writes it, meaning)."""
    return documented_of(Settings)


def load_settings(folder: Path) -> Settings:
    """Read `headrace.toml` of a project."""
    path = folder / "headrace.toml"
    if not path.is_file():
        raise BadProject(
            f"there is no headrace.toml in {folder}",
            hint="run `headrace new DIR` to create a project, or change to a project's folder.",
        )
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadProject(
            f"headrace.toml cannot be read: {error}", origin=Origin(path.name, 1)
        ) from error
    if not isinstance(table.get("name"), str) or not table["name"]:
        raise BadProject(
            "headrace.toml does not set the name of the project",
            hint='add the line: name = "shop"',
            origin=Origin(path.name, 1),
        )
    return read_settings(table, Origin(path.name, 1))


def read_settings(table: dict[str, Any], origin: Origin) -> Settings:
    """Settings from the tables of a TOML file, each value checked."""
    return read_into(Settings(name=table["name"]), table, origin)
