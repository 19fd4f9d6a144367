"""server.toml: every setting has a default, and what is wrong is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.core.errors import BadSetting
from headrace.server.settings import ServerSettings, load_server_settings


def test_without_a_file_all_settings_have_their_defaults(tmp_path: Path) -> None:
    assert load_server_settings(tmp_path / "server.toml") == ServerSettings()


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "server.toml"
    path.write_text(
        '[http]\nport = 9000\n[room]\ncores = 8\ntags = ["ssd"]\npools = { big = "yarn" }\n'
        '[supervise]\nsilent = "10 seconds"\n'
    )
    settings = load_server_settings(path)
    assert (settings.http.port, settings.room.cores, settings.room.tags) == (
        9000,
        8,
        ("ssd",),
    )
    assert settings.room.pools == {"big": "yarn"}
    assert settings.supervise.silent_us == 10_000_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[rooms]\n", "there is no setting 'rooms'"),
        ("[room]\ncore = 1\n", "there is no setting 'room.core'"),
        ("room = 1\n", "[room] must be a table of settings, not a value"),
        ("[room]\ncores = -1\n", "room.cores must be at least 0, not -1"),
        ("[room\n", "server.toml cannot be read"),
    ],
)
def test_what_is_wrong_in_it_is_told(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "server.toml"
    path.write_text(text)
    with pytest.raises(BadSetting) as raised:
        load_server_settings(path)
    assert raised.value.message.startswith(message)
    assert str(raised.value.origin) == "server.toml:1"
