"""Queries are asked, stopped and planned, and answers taken away as files."""

from __future__ import annotations

import io

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.api.export import csv_response, parquet_response, wanted_form
from headrace.serving.answer import Answer, ColumnInfo

from .conftest import Shop, condition

WINDOW = {"start": "2026-01-01T00:00:00Z", "end": None}
ROWS = Answer(
    [
        {"url": '/a,"b"', "hour": WINDOW, "n": 2**60, "day": "2026-01-02", "ok": True, "of": [1]},
        {"url": None, "hour": None, "n": None, "day": None, "ok": None, "of": None},
    ],
    {},
    {
        name: ColumnInfo(type, True)
        for name, type in (
            ("url", "STRING"),
            ("hour", "WINDOW"),
            ("n", "BIGINT"),
            ("day", "DATE"),
            ("ok", "boolean"),
            ("of", "ARRAY<BIGINT>"),
        )
    },
    truncated=True,
)


def test_a_query_is_asked_with_an_id_and_stopped_by_it(client: httpx.Client, shop: Shop) -> None:
    client.post("/v1/sql", json={"sql": "SELECT 1", "id": "tab-1"})
    stopped = client.post("/v1/sql/tab-1/cancel").json()
    assert stopped == {"id": "tab-1", "stopped": True}
    assert shop.calls == [("sql", "SELECT 1", None, "tab-1"), ("cancel", "tab-1")]


@pytest.mark.parametrize("id", ["", "a b", "x" * 65, "../x"])
def test_an_id_is_a_short_plain_word(client: httpx.Client, id: str) -> None:
    assert condition(client.post("/v1/sql", json={"sql": "SELECT 1", "id": id})) == "BadRequest"


def test_a_plan_is_asked_for(client: httpx.Client, shop: Shop) -> None:
    planned = client.post("/v1/sql/plan", json={"sql": "SELECT 1"}).json()
    assert (planned["by"], planned["relations"]) == ("store", ["visitors"])
    assert shop.calls == [("query_plan", "SELECT 1")]


def test_accept_chooses_the_form() -> None:
    assert wanted_form("text/csv, */*") is csv_response
    assert wanted_form("application/vnd.apache.parquet;q=1") is parquet_response
    for accept in ("", "*/*", "application/json, text/csv", "text/html"):
        assert wanted_form(accept) is None


def test_csv_is_as_rfc_4180_has_it() -> None:
    response = csv_response(ROWS)
    assert bytes(response.body).decode() == (
        "url,hour_start,hour_end,n,day,ok,of\r\n"
        '"/a,""b""",2026-01-01T00:00:00Z,,1152921504606846976,2026-01-02,true,[1]\r\n'
        ",,,,,,\r\n"
    )
    assert response.headers["content-type"].startswith("text/csv")


def test_parquet_has_the_types_of_the_answer() -> None:
    table = pq.read_table(io.BytesIO(bytes(parquet_response(ROWS).body)))
    assert table.schema.field("n").type == pa.int64()
    assert table.schema.field("day").type == pa.date32()
    assert table.schema.field("hour").type.field("start").type == pa.timestamp("us", "UTC")
    first, second = table.to_pylist()
    assert (first["url"], first["n"], first["ok"], first["of"]) == ('/a,"b"', 2**60, True, "[1]")
    assert set(second.values()) == {None}


def test_a_file_says_in_headers_what_it_speaks_for(client: httpx.Client) -> None:
    response = client.post(
        "/v1/sql", json={"sql": "SELECT * FROM visitors"}, headers={"Accept": "text/csv"}
    )
    assert response.text.splitlines()[0] == "url,visitors"
    assert '"generation":3' in response.headers["x-headrace-as-of"]
    assert response.headers["x-headrace-truncated"] == "true"
