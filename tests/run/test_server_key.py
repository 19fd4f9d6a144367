"""A job's key is made once, and is for its owner alone."""

from __future__ import annotations

from pathlib import Path

from headrace.access.delegation import KEY_BYTES
from headrace.define.layout import Layout
from headrace.run.launch_spec import ensure_key, read_key


def test_a_key_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "state")
    key = ensure_key(layout)
    assert len(key) == KEY_BYTES
    assert ensure_key(layout) == read_key(layout) == key
    assert layout.server_key.stat().st_mode & 0o777 == 0o600


def test_each_job_has_a_key_of_its_own(tmp_path: Path) -> None:
    assert ensure_key(Layout(tmp_path / "a")) != ensure_key(Layout(tmp_path / "b"))
