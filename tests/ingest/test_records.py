"""Files and pipes as records: NDJSON, CSV, a JSON array, and damaged ones."""

from __future__ import annotations

import gzip
import io
from typing import BinaryIO, cast

import pytest

from headrace.core.errors import LimitReached
from headrace.core.event import DAMAGED, OVERLONG
from headrace.core.schema import Column, Schema, Type
from headrace.ingest.csv_json import csv_to_json
from headrace.ingest.lines import Lines, UnreadableRecord
from headrace.ingest.records import ARRAY_BYTES_MAX, Kind, read_chunks, read_records

SCHEMA = Schema(
    (
        Column("who", Type("STRING")),
        Column("n", Type("BIGINT")),
        Column("x", Type("DOUBLE")),
        Column("ok", Type("BOOLEAN")),
        Column("tags", Type.array_of(Type("STRING"))),
    )
)


def read(body: bytes, kind: Kind = "ndjson", **options: bool) -> list[bytes]:
    chunks = read_records(io.BytesIO(body), kind, SCHEMA, **options)
    return [record for chunk in chunks for record in chunk]


def test_ndjson_is_one_record_a_line_and_blank_lines_are_none() -> None:
    assert read(b'\xef\xbb\xbf{"n":1}\r\n\n  \nbroken\n{"n":2}') == [
        b'{"n":1}',
        b"broken",
        b'{"n":2}',
    ]


def test_an_empty_file_has_no_records() -> None:
    assert read(b"") == read(b"", "csv") == read(b"\n\n") == []


def test_a_json_array_is_its_elements() -> None:
    assert read(b'\n [{"n": 1},\n {"n":\n2}]\n') == [b'{"n": 1}', b'{"n":\n2}']
    assert read(b"[]") == []


def test_what_only_begins_like_an_array_is_taken_line_by_line() -> None:
    assert read(b'[oops\n{"n":1}\n') == [b"[oops", b'{"n":1}']


def test_an_array_that_is_too_large_to_hold_is_refused() -> None:
    with pytest.raises(LimitReached, match="a JSON array has more than 16777216 bytes"):
        read(b"[" + b" " * ARRAY_BYTES_MAX + b"]")


@pytest.mark.parametrize(
    ("row", "json"),
    [
        (b"ada,7,1.5,true,", b'{"who":"ada","n":7,"x":1.5,"ok":true,"tags":null}'),
        (
            b'"a ""b"", c",-7,1e3,F,[1]',
            b'{"who":"a \\"b\\", c","n":-7,"x":1e3,"ok":false,"tags":[1]}',
        ),
        (b",,,,", b'{"who":null,"n":null,"x":null,"ok":null,"tags":null}'),
        (b"7,007,.5,0,x", b'{"who":"7","n":7,"x":0.5,"ok":false,"tags":"x"}'),
        (b"a,1_0,nan,maybe,[", b'{"who":"a","n":"1_0","x":"nan","ok":"maybe","tags":"["}'),
        (
            b"a,123456789012345678901234567890,0.1000000000000000055,1,",
            b'{"who":"a","n":123456789012345678901234567890,"x":0.1000000000000000055,"ok":true,"tags":null}',
        ),
        (b"too,few", b"too,few"),
        (b"\xff,1,1,1,", b"\xff,1,1,1,"),
    ],
)
def test_a_csv_row_becomes_json_with_the_declared_types(row: bytes, json: bytes) -> None:
    assert csv_to_json(SCHEMA.names, SCHEMA)(row) == json


def test_a_csv_header_names_the_fields_in_the_declared_spelling_and_keeps_others() -> None:
    body = b"\xef\xbb\xbfN,WHO,event_id\r\n7,ada,e1\r\n"
    assert read(body, "csv") == [b'{"n":7,"who":"ada","event_id":"e1"}']


def test_csv_without_a_header_has_the_declared_columns() -> None:
    assert read(b"ada,1,2,1,\n", "csv", header=False)[0].startswith(b'{"who":"ada","n":1')


def test_a_stream_of_csv_takes_the_rows_as_they_are() -> None:
    body = b'who,n\n"line one\nline two",1\nbob,2\n'
    assert read(body, "csv", convert=False) == [b'"line one\nline two",1', b"bob,2"]


def test_a_quote_that_is_never_closed_does_not_swallow_the_file() -> None:
    body = b'who\n"open\n' + b"row\n" * 100
    chunks = read_records(io.BytesIO(body), "csv", SCHEMA, convert=False, record_bytes_max=40)
    records = [record for chunk in chunks for record in chunk]
    assert len(records) == 101
    assert records[:2] == [b'"open', b"row"]


def test_chunks_are_bounded_by_count_and_by_size() -> None:
    many = list(read_records(io.BytesIO(b"{}\n" * 12_000), "ndjson", SCHEMA))
    assert [len(chunk) for chunk in many] == [5_000, 5_000, 2_000]
    large = list(read_records(io.BytesIO((b"x" * 400_000 + b"\n") * 5), "ndjson", SCHEMA))
    assert [len(chunk) for chunk in large] == [3, 2]


def lines(body: bytes, **options: int) -> Lines:
    return Lines(io.BytesIO(body), line_bytes_max=10, **options)


def test_a_line_above_the_limit_is_passed_over_and_told() -> None:
    chunk = list(read_chunks(lines(b"a\n" + b"x" * 50 + b"\nb\n"), "ndjson", SCHEMA))[-1]
    assert chunk.records == [b"a", b"b"]
    assert chunk.taken == 55
    why = "the line at byte 2 has 51 bytes, above the limit of 10"
    assert chunk.unread == (UnreadableRecord(b"x" * 10, OVERLONG, why),)


@pytest.mark.parametrize("size", [9, 10, 11, 12, 13, 24, 25])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_the_limit_of_a_line_is_exact(size: int, end: bytes) -> None:
    chunk = list(read_chunks(lines(b"x" * size + end + b"b\n"), "ndjson", SCHEMA))[-1]
    assert chunk.records == ([b"x" * size, b"b"] if size <= 10 else [b"b"])
    assert len(chunk.unread) == (size > 10)


def test_an_unfinished_line_waits_where_the_file_may_grow() -> None:
    assert list(read_chunks(lines(b"a\nhalf", whole=False), "ndjson", SCHEMA))[-1].taken == 2
    too_long = list(read_chunks(lines(b"a\n" + b"x" * 40, whole=False), "ndjson", SCHEMA))[-1]
    assert (too_long.records, too_long.taken, too_long.unread) == ([b"a"], 2, ())


def test_an_unfinished_quoted_row_waits_where_the_file_may_grow() -> None:
    growing = lines(b'a,"\nb\n', whole=False)
    chunk = list(read_chunks(growing, "csv", SCHEMA, names=["a", "b"]))[-1]
    assert (chunk.records, chunk.taken) == ([], 0)


def test_of_a_cut_off_gzip_what_could_be_read_is_taken() -> None:
    whole = gzip.compress(b"".join(b'{"n":%d}\n' % n for n in range(20_000)))
    stream = cast(BinaryIO, gzip.GzipFile(fileobj=io.BytesIO(whole[: len(whole) // 2])))
    chunks = list(read_chunks(Lines(stream, line_bytes_max=100), "ndjson", SCHEMA))
    taken = [record for chunk in chunks for record in chunk.records]
    (rest,) = chunks[-1].unread
    assert (rest.mark, rest.why[:29]) == (DAMAGED, "it cannot be read beyond byte")
    assert len(taken) > 5_000
    assert taken == [b'{"n":%d}' % n for n in range(len(taken))]
    assert (b'{"n":%d}' % len(taken)).startswith(rest.raw), "what could be read of the next one"
    assert chunks[-1].taken == sum(len(record) + 1 for record in taken)
