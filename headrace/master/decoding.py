"""The decoder of a stream, and the Arrow schema of its decoded events."""

from __future__ import annotations

import pyarrow as pa

from headrace.compile.plan import StreamPlan
from headrace.define.definitions import Watermark
from headrace.log.decode import Decoder


def decoder_of(stream: StreamPlan) -> Decoder:
    mark = Watermark(*stream.watermark, stream.ahead_us) if stream.watermark else None
    return Decoder(stream.schema.stored, stream.format, mark)


def declared_schema(stream: StreamPlan) -> pa.Schema:
    return declared_of(decoder_of(stream))


def declared_of(decoder: Decoder) -> pa.Schema:
    schema = decoder.arrow_schema(raw=False)
    return pa.schema([schema.field(name) for name in decoder.schema.names])
