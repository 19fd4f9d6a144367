"""Events that are sent from Python."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Future
from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import pytest

from headrace.client import sending
from headrace.client.client import Client
from headrace.core.errors import BadRequest, DiskFull
from headrace.ingest.intake import Receipt
from tests.api.conftest import Shop


def test_dicts_texts_and_bytes_arrive(client: Client, shop: Shop) -> None:
    moment = datetime(2026, 11, 15, 19, tzinfo=UTC)
    rich = {"ts": moment, "day": date(2026, 11, 15), "n": np.int64(3), "p": pd.Timestamp(moment)}
    receipt = client.send("clicks", [rich, '{"user":"ada"}', b"{oops"])
    assert (receipt.accepted, receipt.duplicates) == (3, 0)
    first, *rest = shop.logged()
    day = "2026-11-15T19:00:00"
    assert json.loads(first) == {
        "ts": f"{day}Z", "day": "2026-11-15", "n": 3, "p": f"{day}+00:00",
    }  # fmt: skip
    assert rest == [b'{"user":"ada"}', b"{oops"]


def test_one_event_is_one_event(client: Client, shop: Shop) -> None:
    assert client.streams.clicks.send({"user": "ada"}).accepted == 1  # type: ignore[arg-type]
    assert shop.logged() == [b'{"user":"ada"}']


def test_an_iterator_goes_in_batches(
    client: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "BATCH_EVENTS_MAX", 2)
    receipt = client.send("clicks", ({"event_id": n % 4} for n in range(5)))
    assert receipt == Receipt(5, 1, 0, ((0, 0, 2), (0, 2, 4), (0, 4, 5)))
    assert shop.calls == [("submit", "clicks", 2)] * 2 + [("submit", "clicks", 1)]


def test_a_batch_has_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "BATCH_BYTES_MAX", 10)
    assert list(sending.batches([b"1234567", b"123", b"4", b"x" * 20])) == [
        [b"1234567", b"123"], [b"4"], [b"x" * 20],
    ]  # fmt: skip


def test_nothing_is_sent_for_no_events(client: Client, shop: Shop) -> None:
    assert client.send("clicks", []) == Receipt(0)
    assert shop.calls == []


def test_an_error_in_the_middle_says_what_was_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        taken = 0

        def submit(self, stream: str, records: Sequence[bytes]) -> Future[Receipt]:
            future: Future[Receipt] = Future()
            if self.taken:
                raise DiskFull("the disk has no room", detail="1 byte is free.")
            self.taken = len(records)
            future.set_result(Receipt(len(records)))
            return future

    monkeypatch.setattr(sending, "BATCH_EVENTS_MAX", 2)
    with pytest.raises(DiskFull) as raised:
        sending.send(Full(), "clicks", [{}] * 3)  # type: ignore[arg-type]
    assert raised.value.detail == "1 byte is free. the first 2 events were accepted."


def test_what_has_no_json_is_told_with_its_number(client: Client) -> None:
    with pytest.raises(BadRequest) as raised:
        client.send("clicks", [{}, {"user": object()}])
    assert raised.value.message == ("event 2 cannot be written as JSON: object is not a JSON type")
