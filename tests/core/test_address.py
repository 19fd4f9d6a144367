"""Addresses can be printed and sent to a task, and none prints a password."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from headrace.core.address import StoreAddress

URL = "postgresql://ann:s3cret@db.example:5433/events?password=s3cret&sslmode=require"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (URL, "schema shop of postgresql://ann@db.example:5433/events"),
        ("postgresql://db/events", "schema shop of postgresql://db/events"),
        ("postgresql:///events?host=/run", "schema shop of postgresql:///events"),
        ("postgres://a:b@c@db/events", "schema shop of postgresql://a@db/events"),
    ],
)
def test_an_address_shows_no_password(url: str, shown: str) -> None:
    assert str(StoreAddress.of_postgres(url, "shop")) == shown


def test_no_form_of_an_address_shows_a_password() -> None:
    address = StoreAddress.of_postgres(URL, "shop")
    assert "s3cret" not in f"{address} {address!r}"
    assert pickle.loads(pickle.dumps(address)) == address


def test_only_a_file_has_a_path() -> None:
    path = Path("/data/serving.db")
    assert StoreAddress.of_file(path).path == path
    with pytest.raises(ValueError, match="is not the address of a file"):
        _ = StoreAddress.of_postgres(URL, "shop").path
