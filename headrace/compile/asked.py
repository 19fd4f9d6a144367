"""A query with a pattern, over all events that a stream has: the same plan, with the end known.

tests/spark/test_query_worker.py asks such queries.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from headrace.compile.carry import Carried
from headrace.compile.lower import Analyse
from headrace.compile.matched import matched_stream
from headrace.compile.resolve import Resolved
from headrace.core.errors import BadQuery
from headrace.core.origin import Origin
from headrace.define.dialect import parse_query
from headrace.define.queries import query_of


def asked_matches(
    text: str, times: Mapping[str, str | None], name: str, analyse: Analyse
) -> Carried:
    """A query with a pattern over all events of one of the streams, whose time columns `times`
    gives.
    """
    origin = Origin("query", 1)
    definition = query_of("stream", "asked", text, origin, origin)
    source = parse_query(definition.query, origin)
    assert isinstance(source, exp.Select)
    stream = next(table.name for table in source.find_all(exp.Table))
    known = {known.lower(): known for known in times}
    if stream.lower() not in known:
        raise BadQuery(
            f"there is no stream '{stream}'", hint=f"there are: {', '.join(known.values())}."
        )
    resolved = Resolved(definition, source, known[stream.lower()], stream, (), ())
    time = times[known[stream.lower()]]
    return matched_stream(resolved, source, time, name, analyse, closed=True)
