"""The databases that the store's tests run on.

A module with `pytestmark = on_every_database` runs once on each: what its tests open with
`open_database` or `open_store` (databases.py) is then in that database. One that reads more than it
writes has `on_drawn_database`, and runs on each in `make prove` only. Fixtures that live longer
than a test ask for the fixture `database`.
"""

from __future__ import annotations

from typing import Any

import pytest
from chance import PROVE, drawn

SQLITE, POSTGRES = "sqlite", "postgres"
KINDS: list[Any] = [SQLITE, pytest.param(POSTGRES, marks=pytest.mark.process)]


def _on(kinds: list[Any]) -> list[pytest.MarkDecorator]:
    use = pytest.mark.usefixtures("database")
    return [use, pytest.mark.parametrize("database", kinds, indirect=True, scope="module")]


on_every_database = _on(KINDS)
on_drawn_database = _on(KINDS if PROVE else [drawn("database").choice(KINDS)])
