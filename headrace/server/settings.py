"""Every setting of `server.toml` in a domain's folder; none must be given.

docs/settings.md lists them, compared by tests/docs/test_complete.py.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from headrace.core.errors import BadSetting
from headrace.core.origin import Origin
from headrace.define.setting import read_into, setting
from headrace.define.settings import AccessSettings, HttpSettings


@dataclass(frozen=True, slots=True)
class RoomSettings:
    cores: int = setting(0, "cores for jobs; 0: all of the machine", least=0)
    memory: str = setting("", "memory for the drivers of jobs; empty: all of the machine")
    tags: tuple[str, ...] = setting([], "tags that jobs can require of this server")
    pools: dict[str, str] = setting({}, "Spark masters by name, for jobs that request a pool")


@dataclass(frozen=True, slots=True)
class SuperviseSettings:
    pause_us: int = setting(
        "1 second", "back-off before the first restart; doubled for each further one", duration=True
    )
    pause_max_us: int = setting("60 seconds", "maximum back-off before a restart", duration=True)
    deaths_max: int = setting(8, "consecutive deaths after which a job has failed", least=1)
    window_us: int = setting("30 minutes", "how long a death counts", duration=True)
    healthy_us: int = setting(
        "60 seconds", "time that a job must respond for its deaths to be reset", duration=True
    )
    silent_us: int = setting(
        "30 seconds",
        "time without heartbeat after which a job is killed and restarted",
        duration=True,
    )
    start_us: int = setting(
        "5 minutes", "time to its first heartbeat before it is killed", duration=True
    )
    stop_us: int = setting("60 seconds", "time to stop before a job is killed", duration=True)


@dataclass(frozen=True, slots=True)
class SubmitSettings:
    bytes_max: int = setting(16 << 20, "largest project that can be submitted, packed", least=1)
    unpacked_bytes_max: int = setting(64 << 20, "the same, unpacked", least=1)
    files_max: int = setting(2_000, "files in a project", least=1)
    check_us: int = setting("5 minutes", "time that the check of a project may take", duration=True)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    http: HttpSettings = field(default_factory=HttpSettings)
    access: AccessSettings = field(default_factory=AccessSettings)
    room: RoomSettings = field(default_factory=RoomSettings)
    supervise: SuperviseSettings = field(default_factory=SuperviseSettings)
    submit: SubmitSettings = field(default_factory=SubmitSettings)


def load_server_settings(path: Path) -> ServerSettings:
    """Read `server.toml`; the defaults if there is none."""
    origin = Origin(path.name, 1)
    try:
        table = tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSetting(f"{path.name} cannot be read: {error}", origin=origin) from error
    return read_into(ServerSettings(), table, origin)
