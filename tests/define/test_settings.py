"""Each setting's default, and the whole sentence of each refusal."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from headrace.core.errors import BadProject, BadSetting, HeadraceError
from headrace.core.origin import Origin
from headrace.core.time import duration_us
from headrace.define.setting import key_of
from headrace.define.settings import Settings, documented, load_settings, read_settings

AT = Origin("headrace.toml", 1)
MB = 1 << 20

# As the file writes them: a changed default is a change for the users, so it is said here too.
DEFAULTS: dict[str, Any] = {
    "name": "",
    "state": ".headrace",
    "output": "out",
    "http.host": "127.0.0.1",
    "http.allowed_hosts": [],
    "http.port": 8080,
    "http.body_bytes_max": 16 * MB,
    "http.waiting_max": 256,
    "http.connections_max": 2_000,
    "http.connections_per_address_max": 1_000,
    "http.header_timeout": "10 seconds",
    "http.body_timeout": "60 seconds",
    "http.tls_cert": "",
    "http.tls_key": "",
    "access.queries_max": 64,
    "access.bytes_per_second_max": 256 * MB,
    "access.session_life": "12 hours",
    "access.session_idle": "1 hour",
    "access.token_life_max": "365 days",
    "access.failures_max": 30,
    "log.partitions": 2,
    "log.segment_bytes_max": 64 * MB,
    "log.event_bytes_max": MB,
    "log.retention": "1 day",
    "log.free_bytes_min": 256 * MB,
    "log.format": "json",
    "log.level": "info",
    "store.url": "",
    "store.schema": "",
    "dedup.ids_max": 200_000,
    "spark.master": "local[*]",
    "spark.memory": "2g",
    "spark.shuffle_partitions": 2,
    "spark.vectorised": "true",
    "spark.conf": {},
    "speed.trigger": "500 ms",
    "speed.epoch_events_max": 1_000_000,
    "speed.group": "10 seconds",
    "speed.catch_up_events": 500_000,
    "speed.rebase_events_max": 500_000,
    "archive.interval": "5 seconds",
    "archive.step_events_max": 4_000_000,
    "archive.compact_files": 32,
    "batch.interval": "60 seconds",
    "batch.compare_events_max": 2_000_000,
    "pattern.steps_max": 200_000,
    "watchdog.epoch": "1 minute",
    "watchdog.archive": "2 minutes",
    "watchdog.build": "30 minutes",
    "watchdog.compile": "2 minutes",
    "watchdog.wait": "10 seconds",
    "tables.interval": "10 seconds",
    "query.seconds_max": 30.0,
    "query.rows_max": 10_000,
    "query.bytes_max": 64 * MB,
    "query.text_max": 20_000,
    "query.memory": "1g",
    "query.engine_memory": "1GB",
    "query.kept_rows_max": 2_000_000,
    "query.workers": 2,
    "query.waiting_max": 32,
    "query.idle": "5 minutes",
    "query.scan_max": 1_000_000,
    "subscribe.connections_max": 100,
    "subscribe.events_kept": 10_000,
    "subscribe.waiting_max": 10_000,
    "subscribe.rows_max": 100_000,
    "subscribe.linger": "60 seconds",
    "alerts.keep": "365 days",
    "live.connections_max": 500,
    "live.waiting_max": 64,
    "live.interval": "250 ms",
    "live.rows_max": 1_000,
    "notify.hosts": [],
    "notify.private": "false",
    "notify.secret": "",
    "notify.secret_before": "",
    "notify.connect": "5 seconds",
    "notify.answer": "10 seconds",
    "notify.answer_bytes_max": 65_536,
    "notify.attempts_max": 12,
    "notify.pause": "1 second",
    "notify.pause_max": "5 minutes",
    "notify.smtp_host": "",
    "notify.smtp_port": 587,
    "notify.smtp_starttls": "true",
    "notify.smtp_user": "",
    "notify.smtp_from": "",
    "notify.recipients": [],
    "trace.endpoint": "",
    "lineage.file": "",
    "lineage.url": "",
}


def values(settings: Settings) -> dict[str, Any]:
    """Each setting by its key in the file; durations in microseconds."""
    found: dict[str, Any] = {}
    for item in fields(settings):
        value = getattr(settings, item.name)
        inner = fields(value) if is_dataclass(value) else ()
        found |= {f"{item.name}.{key_of(i)}": getattr(value, i.name) for i in inner}
        found |= {} if is_dataclass(value) else {item.name: value}
    return found


DURATIONS = {
    "http.header_timeout", "http.body_timeout", "query.idle",
    "access.session_idle", "access.token_life_max",
    "access.session_life", "log.retention", "speed.trigger", "speed.group",
    "watchdog.epoch", "watchdog.archive", "watchdog.build", "watchdog.compile", "watchdog.wait",
    "archive.interval", "batch.interval", "tables.interval", "subscribe.linger", "alerts.keep",
    "live.interval",
    "notify.connect", "notify.answer", "notify.pause", "notify.pause_max",
}  # fmt: skip
# What Python has for what the file writes.
READ: dict[str, Any] = {
    "http.allowed_hosts": (),
    "notify.hosts": (),
    "notify.recipients": (),
    "notify.private": False,
    "notify.smtp_starttls": True,
    "spark.vectorised": True,
}

# Values other than the default, of settings that may not be any text.
WORDS = {"log.format": "console", "log.level": "error", "store.url": "postgresql://db/events"}


def file_of(key: str, value: Any) -> dict[str, Any]:
    section, _, name = key.rpartition(".")
    return {"name": "shop"} | ({section: {name: value}} if section else {name: value})


def test_every_setting_has_its_default() -> None:
    assert {key: default for key, default, _ in documented()} == DEFAULTS


def test_every_setting_says_what_it_means() -> None:
    assert [key for key, _, meaning in documented() if not meaning] == []


def test_a_file_with_a_name_alone_has_the_defaults() -> None:
    found = values(read_settings({"name": "shop"}, AT))
    expected = DEFAULTS | {"name": "shop"}
    expected |= {key: duration_us(DEFAULTS[key]) for key in DURATIONS} | READ
    assert found == expected


@pytest.mark.parametrize("key", [key for key in DEFAULTS if key != "name"])
def test_setting_can_be_said_and_changes_nothing_else(key: str) -> None:
    default = DEFAULTS[key]
    if key in DURATIONS:
        said, kept = "90 seconds", 90_000_000
    elif isinstance(default, list):
        said, kept = ["ops.example"], ("ops.example",)
    elif key in READ:
        said = kept = not READ[key]
    elif key in WORDS:
        said = kept = WORDS[key]
    elif isinstance(default, dict):
        said, kept = {"spark.ui.enabled": True, "n": 3}, {"spark.ui.enabled": "true", "n": "3"}
    else:
        said = kept = default + type(default)(1)
    before = values(Settings("shop"))
    assert before[key] != kept
    assert values(read_settings(file_of(key, said), AT)) == before | {key: kept}


def test_a_whole_number_will_do_for_a_number() -> None:
    assert read_settings(file_of("query.seconds_max", 5), AT).query.seconds_max == 5.0


REFUSED: list[tuple[str, Any, str]] = [
    (
        "http.prot",
        8081,
        "BadSetting: there is no setting 'http.prot'\n  hint: did you mean 'http.port'?",
    ),
    (
        "batch.xyz",
        1,
        "BadSetting: there is no setting 'batch.xyz'\n  hint: available settings: batch.interval, "
        "batch.compare_events_max.",
    ),
    ("stat", "x", "BadSetting: there is no setting 'stat'\n  hint: did you mean 'state'?"),
    ("http", 8080, "BadSetting: [http] must be a table of settings, not a value"),
    ("http.port", "8080", "BadSetting: http.port must be a whole number, not '8080'"),
    ("http.port", True, "BadSetting: http.port must be a whole number, not True"),
    ("http.port", -1, "BadSetting: http.port must be at least 0, not -1"),
    (
        "log.level",
        "loud",
        "BadSetting: log.level must be one of debug, info, warning, error, not 'loud'",
    ),
    ("http.host", 1, "BadSetting: http.host must be a string, not 1"),
    (
        "http.allowed_hosts",
        ["https://stats.example.com"],
        "BadSetting: http.allowed_hosts must contain host names without scheme and port, "
        "not 'https://stats.example.com'",
    ),
    (
        "http.allowed_hosts",
        ["*.example.com", "*"],
        "BadSetting: http.allowed_hosts must contain host names without scheme and port, not '*'",
    ),
    ("notify.hosts", "x", "BadSetting: notify.hosts must be a list of strings, not 'x'"),
    ("notify.hosts", [1], "BadSetting: notify.hosts must be a list of strings, not [1]"),
    ("notify.private", 1, "BadSetting: notify.private must be true or false, not 1"),
    (
        "store.url",
        "mysql://ann:s3cret@db/events",
        "BadSetting: store.url must be a database URL such as postgresql://user@host/database",
    ),
    ("log.partitions", 0, "BadSetting: log.partitions must be at least 1, not 0"),
    ("query.workers", 1, "BadSetting: query.workers must be at least 2, not 1"),
    ("query.seconds_max", "fast", "BadSetting: query.seconds_max must be a number, not 'fast'"),
    ("query.seconds_max", 0, "BadSetting: query.seconds_max must be at least 0.1, not 0.0"),
    ("spark.conf", "x", "BadSetting: spark.conf must be a table, not 'x'"),
    (
        "speed.trigger",
        500,
        'BadSetting: speed.trigger is not a duration: 500\n  hint: write trigger = "500 ms"',
    ),
    (
        "log.retention",
        "1 month",
        "BadSetting: log.retention is not a duration: '1 month'\n"
        '  hint: write retention = "1 day"',
    ),
]


@pytest.mark.parametrize(("key", "value", "sentence"), REFUSED)
def test_wrong_setting_is_refused_with_a_sentence(key: str, value: Any, sentence: str) -> None:
    with pytest.raises(BadSetting) as caught:
        read_settings(file_of(key, value), AT)
    assert str(caught.value) == f"{sentence}\n  at headrace.toml:1"


@pytest.mark.parametrize("key", [k for k, v in DEFAULTS.items() if type(v) in (int, float)])
def test_every_number_has_a_least_value(key: str) -> None:
    with pytest.raises(BadSetting, match="must be at least"):
        read_settings(file_of(key, -1), AT)


def test_known_settings_are_named_where_none_is_near() -> None:
    with pytest.raises(BadSetting) as caught:
        read_settings({"name": "shop", "qqq": 1}, AT)
    assert caught.value.hint == (
        "available settings: name, state, output, http, access, log, store, dedup, spark, speed, "
        "archive, batch, pattern, watchdog, tables, query, subscribe, alerts, live, notify, "
        "trace, lineage."
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            None,
            "BadProject: there is no headrace.toml in {folder}\n  hint: run `headrace new DIR` to "
            "create a project, or change to a project's folder.",
        ),
        (
            b"",
            "BadProject: headrace.toml does not set the name of the project\n"
            '  hint: add the line: name = "shop"\n'
            "  at headrace.toml:1",
        ),
        (
            b"name = 3\n",
            "BadProject: headrace.toml does not set the name of the project\n"
            '  hint: add the line: name = "shop"\n'
            "  at headrace.toml:1",
        ),
        (
            b"name =\n",
            "BadProject: headrace.toml cannot be read: Invalid value (at line 1, column 7)\n"
            "  at headrace.toml:1",
        ),
        (
            b"name = '\xff'\n",
            "BadProject: headrace.toml cannot be read: 'utf-8' codec can't decode byte 0xff in "
            "position 8: invalid start byte\n"
            "  at headrace.toml:1",
        ),
    ],
)
def test_file_that_cannot_be_used_is_refused(
    tmp_path: Path, text: bytes | None, sentence: str
) -> None:
    if text is not None:
        (tmp_path / "headrace.toml").write_bytes(text)
    with pytest.raises(HeadraceError) as caught:
        load_settings(tmp_path)
    assert type(caught.value) is BadProject
    assert str(caught.value) == sentence.format(folder=tmp_path)


def test_file_is_read_from_the_projects_folder(tmp_path: Path) -> None:
    (tmp_path / "headrace.toml").write_text(
        'name = "shop"\n[http]\nport = 0\n[spark.conf]\n"spark.ui.enabled" = false\n'
    )
    settings = load_settings(tmp_path)
    assert (settings.name, settings.http.port) == ("shop", 0)
    assert settings.spark.conf == {"spark.ui.enabled": "false"}
