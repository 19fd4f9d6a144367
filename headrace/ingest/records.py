"""A file or a pipe as records, in chunks: what `headrace send` and the files connector read.

NDJSON is one event a line. CSV becomes JSON by its header, unless the stream itself takes CSV. A
file that is one JSON array is taken too, up to a size, because it must be held whole. Memory is
bounded by a chunk: 5,000 records or 1 MiB, and one record more.
tests/ingest/test_records.py checks each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Literal

import msgspec

from headrace.core.errors import LimitReached
from headrace.core.event import OVERLONG
from headrace.core.schema import Schema
from headrace.ingest.csv_json import csv_to_json
from headrace.ingest.fields import csv_row
from headrace.ingest.lines import Lines, UnreadableRecord

Kind = Literal["ndjson", "csv"]
CHUNK_RECORDS, CHUNK_BYTES = 5_000, 1 << 20
RECORD_BYTES_MAX = 1 << 20
ARRAY_BYTES_MAX = 16 << 20


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some records, and the byte up to which the stream is taken with them."""

    records: list[bytes]
    taken: int
    unread: tuple[UnreadableRecord, ...] = ()


def read_records(
    stream: BinaryIO,
    kind: Kind,
    schema: Schema,
    *,
    header: bool = True,
    convert: bool = True,
    record_bytes_max: int = RECORD_BYTES_MAX,
) -> Iterator[list[bytes]]:
    """The records of a stream in chunks; LimitReached where one is too long or cannot be read.

    >>> import io
    >>> list(read_records(io.BytesIO(b"a,b\\n1,x\\n"), "csv", Schema(())))
    [[b'{"a":"1","b":"x"}']]
    """
    lines = Lines(stream, line_bytes_max=record_bytes_max)
    names = None if header else schema.names
    for chunk in read_chunks(lines, kind, schema, names=names, convert=convert):
        if chunk.records:
            yield chunk.records
        if chunk.unread:
            raise LimitReached(
                chunk.unread[0].why,
                hint="the records before it were accepted; correct it and send again from there.",
            )


def read_chunks(
    lines: Lines,
    kind: Kind,
    schema: Schema,
    *,
    names: Sequence[str] | None = None,
    convert: bool = True,
) -> Iterator[Chunk]:
    """The records of these lines, each chunk with the byte behind it and what was not read.

    `names` are a CSV's columns; without them its first record says them.
    """
    if kind == "csv":
        records = _csv_records(lines)
        names = _header(records, schema) if names is None else names
        yield from _chunks(lines, records, csv_to_json(names, schema) if convert else bytes)
    elif lines.whole and not lines.taken and lines.first().lstrip().startswith(b"["):
        yield from _array(lines)
    else:
        yield from _chunks(lines, lines, bytes)


def file_chunks(
    file: BinaryIO,
    kind: Kind,
    schema: Schema,
    *,
    start: int,
    header: bool,
    convert: bool,
    record_bytes_max: int,
    whole: bool = True,
) -> Iterator[Chunk]:
    """The records of a file from byte `start` on, which is where a record begins."""
    names = None if header else list(schema.names)
    if start:
        names = names or (_header_of(file, schema) if kind == "csv" else None)
        file.seek(start)
    lines = Lines(file, start=start, line_bytes_max=record_bytes_max, whole=whole)
    return read_chunks(lines, kind, schema, names=names, convert=convert)


def file_kind(name: str, format: str) -> Kind:
    """What a file has for a stream of this format, by its name."""
    csv = format == "csv" or name.removesuffix(".gz").endswith(".csv")
    return "csv" if csv else "ndjson"


def unreadable(chunk: Chunk, record_bytes_max: int) -> list[UnreadableRecord]:
    """What a chunk has not read whole, and records that have become too long as JSON."""
    found = list(chunk.unread)
    for record in chunk.records:
        if (size := len(record)) > record_bytes_max:
            why = f"a record before byte {chunk.taken} has {size} bytes"
            why = f"{why}, above the limit of {record_bytes_max}"
            found.append(UnreadableRecord(record[:record_bytes_max], OVERLONG, why))
    return found


def split_lines(body: bytes) -> list[bytes]:
    r"""The records of a body of lines; blank lines are skipped.

    >>> split_lines(b'{"a":1}\r\n\n  \n{"a":2}')
    [b'{"a":1}', b'{"a":2}']
    """
    if b"\r" in body:
        body = body.replace(b"\r\n", b"\n").removesuffix(b"\r")
    lines = body.split(b"\n")
    # Two passes in C cost less than one in Python, and few bodies have a blank line but the last.
    last = lines.pop()
    if last and not last.isspace():
        lines.append(last)
    if all(lines) and not any(map(bytes.isspace, lines)):
        return lines
    return [line for line in lines if line and not line.isspace()]


def _header_of(stream: BinaryIO, schema: Schema) -> list[str]:
    """The names in a CSV file's first record, to resume in the middle of the file."""
    return _header(_csv_records(Lines(stream, line_bytes_max=RECORD_BYTES_MAX)), schema)


def _header(records: Iterator[bytes], schema: Schema) -> list[str]:
    return csv_row(next(records, b"")) or list(schema.names)


def _chunks(
    lines: Lines, records: Iterable[bytes], convert: Callable[[bytes], bytes]
) -> Iterator[Chunk]:
    chunk: list[bytes] = []
    size = 0
    for record in records:
        if not record or record.isspace():
            continue
        chunk.append(convert(record))
        size += len(chunk[-1])
        if len(chunk) == CHUNK_RECORDS or size >= CHUNK_BYTES:
            yield Chunk(chunk, lines.taken, lines.unread())
            chunk, size = [], 0
    yield Chunk(chunk, lines.taken, lines.unread())


def _csv_records(lines: Lines) -> Iterator[bytes]:
    """Lines, joined where a quoted field continues over the end of one."""
    parts: list[bytes] = []
    begun, size = lines.taken, 0
    for line in lines:
        parts.append(line)
        size += len(line) + 1
        if size > lines.line_bytes_max:
            yield from parts  # a quote that is never closed must not swallow the file
        elif sum(part.count(b'"') for part in parts) % 2:
            continue
        else:
            yield b"\n".join(parts)
        parts, begun, size = [], lines.taken, 0
    if parts and lines.whole:
        yield b"\n".join(parts)
    elif parts:
        lines.taken = begun


def _array(lines: Lines) -> Iterator[Chunk]:
    body = lines.rest(ARRAY_BYTES_MAX)
    if len(body) > ARRAY_BYTES_MAX:
        why = f"a JSON array has more than {ARRAY_BYTES_MAX} bytes; send one event per line"
        beginning = body[: lines.line_bytes_max]
        yield Chunk([], lines.taken, (UnreadableRecord(beginning, OVERLONG, why),))
        return
    try:
        records = [bytes(raw) for raw in msgspec.json.decode(body, type=list[msgspec.Raw])]
    except (msgspec.DecodeError, RecursionError):
        records = body.splitlines()  # not an array after all; each line is decoded by itself
    yield from _chunks(lines, records, bytes)
