"""Mutes: which alerts of a rule are saved without a notification, and until when.

A mute is a row that is inserted once; unmuting sets its end to now.
tests/run/test_rule_service.py checks it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from headrace.serving.database import Transaction


@dataclass(frozen=True, slots=True)
class Mute:
    """Mutes alerts with these values, until a time."""

    number: int
    keys: dict[str, str]
    until_us: int

    def covers(self, body: dict[str, Any]) -> bool:
        return all(_text(body.get(name)) == value for name, value in self.keys.items())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def mute(
    db: Transaction, rule: str, keys: dict[str, str], until_us: int, who: str, now_us: int
) -> None:
    db.execute(
        "INSERT INTO _mutes (rule, keys, until_us, muted_by, muted_at) VALUES (?, ?, ?, ?, ?)",
        (rule, msgspec.json.encode(keys).decode(), until_us, who, now_us),
    )


def active_mutes(db: Transaction, rule: str, now_us: int) -> list[Mute]:
    rows = db.execute(
        "SELECT number, keys, until_us FROM _mutes "
        "WHERE rule = ? AND until_us > ? AND muted_at <= ? ORDER BY number",
        (rule, now_us, now_us),
    )
    return [Mute(number, msgspec.json.decode(keys), until) for number, keys, until in rows]


def unmute(db: Transaction, rule: str, keys: Mapping[str, str], now_us: int) -> list[Mute]:
    """End the mute of these values, or all mutes of the rule without values; returns those that
    were ended.
    """
    found = [mute for mute in active_mutes(db, rule, now_us) if not keys or mute.keys == keys]
    ended = [(now_us, mute.number) for mute in found]
    db.executemany("UPDATE _mutes SET until_us = ? WHERE number = ?", ended)
    return found
