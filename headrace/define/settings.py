"""Every setting of `headrace.toml`, with its default and its meaning. Only `name` must be given.

The dataclasses below are the one list of settings: the reader, the error messages and the test that
compares docs/settings.md all walk their fields.
tests/define/test_settings.py checks each default and each refusal.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from headrace.core.errors import BadProject, BadSetting
from headrace.core.origin import Origin
from headrace.core.time import duration_us


def _setting(
    default: Any, meaning: str, *, duration: bool = False, least: float | None = None
) -> Any:
    meta = {"meaning": meaning, "duration": duration, "least": least, "text": default}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=meta)
    if isinstance(default, list):
        return field(default=tuple(default), metadata=meta)
    return field(default=duration_us(default) if duration else default, metadata=meta)


@dataclass(frozen=True, slots=True)
class HttpSettings:
    host: str = _setting("127.0.0.1", "address that the HTTP server listens on")
    port: int = _setting(8080, "port of the HTTP server; 0 takes a free one", least=0)
    body_bytes_max: int = _setting(16 << 20, "largest request body, after decompression", least=1)
    waiting_max: int = _setting(256, "ingest requests in progress before 429", least=1)


@dataclass(frozen=True, slots=True)
class LogSettings:
    partitions: int = _setting(2, "partitions of a stream that does not say", least=1)
    segment_bytes_max: int = _setting(64 << 20, "size at which a segment is sealed", least=4096)
    event_bytes_max: int = _setting(1 << 20, "largest single event", least=1)
    retention_us: int = _setting(
        "1 day", "how long archived segments are kept in the log", duration=True
    )
    free_bytes_min: int = _setting(256 << 20, "free disk below which ingest answers 507", least=0)


@dataclass(frozen=True, slots=True)
class DedupSettings:
    horizon_us: int = _setting(
        "1 hour", "how long after its arrival an event's id is remembered", duration=True
    )
    ids_max: int = _setting(1_000_000, "ids remembered for a stream at most", least=1)


@dataclass(frozen=True, slots=True)
class SparkSettings:
    master: str = _setting("local[*]", "Spark master: local[*], spark://host:port, yarn, k8s://…")
    memory: str = _setting("2g", "memory of the Spark driver")
    shuffle_partitions: int = _setting(2, "partitions of a shuffle", least=1)
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
    step_events_max: int = _setting(1_000_000, "events in one archive step at most", least=1)
    compact_files: int = _setting(32, "small files in a day before they are compacted", least=2)


@dataclass(frozen=True, slots=True)
class BatchSettings:
    interval_us: int = _setting("60 seconds", "time between two builds of a view", duration=True)


@dataclass(frozen=True, slots=True)
class TablesSettings:
    interval_us: int = _setting(
        "10 seconds", "time between two looks at the tables' files", duration=True
    )


@dataclass(frozen=True, slots=True)
class QuerySettings:
    seconds_max: float = _setting(30.0, "time that an ad-hoc query may take", least=0.1)
    rows_max: int = _setting(10_000, "rows that an ad-hoc query may return", least=1)
    bytes_max: int = _setting(64 << 20, "size of an ad-hoc query's answer", least=1024)
    text_max: int = _setting(20_000, "characters in an ad-hoc query", least=1)
    memory: str = _setting("1g", "memory of the process that runs ad-hoc queries on Spark")


@dataclass(frozen=True, slots=True)
class SubscribeSettings:
    connections_max: int = _setting(100, "subscriptions open at a time", least=1)
    events_kept: int = _setting(10_000, "panes of a view that can be resumed from", least=1)
    waiting_max: int = _setting(
        10_000, "panes that wait for a slow reader before it is cut off", least=1
    )
    rows_max: int = _setting(100_000, "rows of a view that can be watched", least=1)
    linger_us: int = _setting(
        "60 seconds", "how long a view that nobody hears any more can be resumed", duration=True
    )


@dataclass(frozen=True, slots=True)
class AlertsSettings:
    keep_us: int = _setting(
        "365 days", "how long alerts stay in the ledger once all is settled", duration=True
    )


@dataclass(frozen=True, slots=True)
class NotifySettings:
    hosts: tuple[str, ...] = _setting([], "hosts that rules may notify by webhook")
    private: bool = _setting(
        False, "whether a webhook may be in a private network, and be plain http"
    )
    secret: str = _setting("", "what webhooks are signed with; HEADRACE_NOTIFY_SECRET goes before")
    connect_us: int = _setting("5 seconds", "time to reach a webhook or mail server", duration=True)
    answer_us: int = _setting(
        "10 seconds", "time that a webhook or mail server may be silent", duration=True
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


@dataclass(frozen=True, slots=True)
class Settings:
    name: str = field(metadata={"meaning": "the project's name", "text": ""})
    state: str = _setting(".headrace", "folder of the project's state, relative to the project")
    http: HttpSettings = field(default_factory=HttpSettings)
    log: LogSettings = field(default_factory=LogSettings)
    dedup: DedupSettings = field(default_factory=DedupSettings)
    spark: SparkSettings = field(default_factory=SparkSettings)
    speed: SpeedSettings = field(default_factory=SpeedSettings)
    archive: ArchiveSettings = field(default_factory=ArchiveSettings)
    batch: BatchSettings = field(default_factory=BatchSettings)
    tables: TablesSettings = field(default_factory=TablesSettings)
    query: QuerySettings = field(default_factory=QuerySettings)
    subscribe: SubscribeSettings = field(default_factory=SubscribeSettings)
    alerts: AlertsSettings = field(default_factory=AlertsSettings)
    notify: NotifySettings = field(default_factory=NotifySettings)


def key_of(item: Field[Any]) -> str:
    """The key in the file: durations are text there, so their unit is not in the name."""
    return item.name.removesuffix("_us") if item.metadata.get("duration") else item.name


def documented() -> Iterator[tuple[str, Any, str]]:
    """Each setting as (dotted key, default as the file writes it, meaning)."""
    for item in fields(Settings):
        if item.default_factory is not MISSING and is_dataclass(item.default_factory):
            for inner in fields(item.default_factory):
                text, meaning = inner.metadata["text"], inner.metadata["meaning"]
                said = str(text).lower() if isinstance(text, bool) else text
                yield f"{item.name}.{key_of(inner)}", said, meaning
        else:
            yield item.name, item.metadata["text"], item.metadata["meaning"]


def load_settings(folder: Path) -> Settings:
    """Read `headrace.toml` of a project."""
    path = folder / "headrace.toml"
    if not path.is_file():
        raise BadProject(
            f"there is no headrace.toml in {folder}",
            hint="run `headrace new DIR` to make a project, or go to a project's folder.",
        )
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadProject(
            f"headrace.toml cannot be read: {error}", origin=Origin(path.name, 1)
        ) from error
    if not isinstance(table.get("name"), str) or not table["name"]:
        raise BadProject(
            "headrace.toml does not give the project a name",
            hint='add the line: name = "shop"',
            origin=Origin(path.name, 1),
        )
    return read_settings(table, Origin(path.name, 1))


def read_settings(table: dict[str, Any], origin: Origin) -> Settings:
    """Settings from the tables of a TOML file, each value checked."""
    settings = Settings(name=table["name"])
    known = {item.name: item for item in fields(Settings)}
    for key, value in table.items():
        if key not in known:
            raise _unknown(key, list(known), origin)
        current = getattr(settings, key)
        if not is_dataclass(current):
            settings = replace(settings, **{key: _checked(known[key], key, value, origin)})
            continue
        if not isinstance(value, dict):
            raise BadSetting(f"[{key}] is a table of settings, not a value", origin=origin)
        section = _read_section(current, key, value, origin)
        settings = replace(settings, **{key: section})
    return settings


def _read_section(section: Any, name: str, table: dict[str, Any], origin: Origin) -> Any:
    known = {key_of(item): item for item in fields(section)}
    for key, value in table.items():
        if key not in known:
            raise _unknown(f"{name}.{key}", [f"{name}.{k}" for k in known], origin)
        checked = _checked(known[key], f"{name}.{key}", value, origin)
        section = replace(section, **{known[key].name: checked})
    return section


def _checked(item: Field[Any], key: str, value: Any, origin: Origin) -> Any:
    if item.metadata.get("duration"):
        try:
            return duration_us(value)
        except (ValueError, TypeError) as error:
            hint = f'write {key.rpartition(".")[2]} = "{item.metadata["text"]}"'
            raise BadSetting(
                f"{key} is not a duration: {value!r}", hint=hint, origin=origin
            ) from error
    if isinstance(item.metadata["text"], dict) and isinstance(value, dict):
        return {str(k): str(v).lower() if isinstance(v, bool) else str(v) for k, v in value.items()}
    expected = type(item.metadata["text"])
    if expected is list and isinstance(value, list) and all(type(v) is str for v in value):
        return tuple(value)
    if expected is float and type(value) is int:
        value = float(value)
    if type(value) is not expected or expected is list:
        words = {
            int: "a whole number", float: "a number", str: "a text", dict: "a table",
            bool: "true or false", list: "a list of texts",
        }  # fmt: skip
        raise BadSetting(f"{key} must be {words[expected]}, not {value!r}", origin=origin)
    least = item.metadata.get("least")
    if least is not None and value < least:
        raise BadSetting(f"{key} must be at least {least}, not {value!r}", origin=origin)
    return value


def _unknown(key: str, known: list[str], origin: Origin) -> BadSetting:
    close = difflib.get_close_matches(key, known, 1)
    hint = f"did you mean '{close[0]}'?" if close else f"known here: {', '.join(known)}."
    return BadSetting(f"there is no setting '{key}'", hint=hint, origin=origin)
