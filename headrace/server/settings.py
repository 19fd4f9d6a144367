"""Every setting of `server.toml` in a domain's folder; none must be given.

docs/settings.md lists them, compared by tests/docs/test_complete.py.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from headrace.core.errors import BadSetting
from headrace.core.origin import Origin
from headrace.define.setting import Documented, documented_of, read_into, setting
from headrace.define.settings import AccessSettings, HttpSettings


@dataclass(frozen=True, slots=True)
class RoomSettings:
    cores: int = setting(0, "cores for jobs; 0 takes those of the machine", least=0)
    memory: str = setting("", "memory for the drivers of jobs; empty takes the machine's")
    tags: tuple[str, ...] = setting([], "what jobs may ask this server to have")
    pools: dict[str, str] = setting({}, "Spark masters by name, for jobs that ask for a pool")


@dataclass(frozen=True, slots=True)
class SuperviseSettings:
    pause_us: int = setting(
        "1 second", "pause before the first restart; each next is twice as long", duration=True
    )
    pause_max_us: int = setting("60 seconds", "longest pause before a restart", duration=True)
    deaths_max: int = setting(8, "deaths in a row before a job has failed", least=1)
    window_us: int = setting("30 minutes", "how long a death counts", duration=True)
    healthy_us: int = setting(
        "60 seconds", "how long a job must answer for its deaths to be forgotten", duration=True
    )
    silent_us: int = setting(
        "30 seconds", "silence after which a job is killed and restarted", duration=True
    )
    start_us: int = setting("5 minutes", "time to its first answer before it is", duration=True)
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


def documented() -> Iterator[Documented]:
    """Each setting as (dotted key, default as the file writes it, meaning)."""
    return documented_of(ServerSettings)


def load_server_settings(path: Path) -> ServerSettings:
    """Read `server.toml`; the defaults if there is none."""
    origin = Origin(path.name, 1)
    try:
        table = tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSetting(f"{path.name} cannot be read: {error}", origin=origin) from error
    return read_into(ServerSettings(), table, origin)
