"""The plan of an ad-hoc query with MATCH_RECOGNIZE, over all rows of any relation.

The plan is that of a stream. The position and time of an event are derived from the query's ORDER
BY: a row's position is its row number within its key, and its time is that number or, for WITHIN,
its timestamp. tests/spark/test_query_worker.py runs such queries.
"""

from __future__ import annotations

from sqlglot import exp

from headrace.compile.carry import CarriedStream
from headrace.compile.lower import Analyse
from headrace.compile.match_recognize import match_stream
from headrace.compile.resolve import ResolvedQuery
from headrace.core.errors import Unsupported
from headrace.core.event import ARRIVED_AT, LATE, LATENESS, OFFSET, PARTITION
from headrace.core.origin import Origin
from headrace.define.definitions import MatchDefinition
from headrace.define.dialect import parse_query, sql_of
from headrace.define.queries import query_of

ROWS, ROW_TIME = "_rows", "_row_time"


def plan_pattern_query(text: str, name: str, analyse: Analyse) -> CarriedStream:
    """Plan a query with a pattern; `name` is the relation of its matches."""
    origin = Origin("query", 1)
    definition = query_of("query", "query", text, origin, origin)
    assert definition.match is not None
    relation = _relation(parse_query(definition.query, origin), definition.match, origin)
    source = _numbered(relation, definition.match, analyse, origin)
    resolved = ResolvedQuery(definition, source, ROWS, ROWS, (), ())
    return match_stream(resolved, source, ROW_TIME, name, analyse, closed=True)


def _relation(source: exp.Query, match: MatchDefinition, origin: Origin) -> exp.Query:
    """SELECT * FROM the relation of the pattern, with the query's WITH clauses inlined."""
    if source.args.get("joins"):
        raise Unsupported(
            "MATCH_RECOGNIZE must be the only relation in FROM",
            hint="put a join into parentheses: FROM (SELECT … FROM a JOIN b …) MATCH_RECOGNIZE …",
            origin=origin,
        )
    written: dict[str, exp.Expr] = {}

    def write(node: exp.Expr) -> exp.Expr:
        found = written.get(node.name.lower()) if isinstance(node, exp.Table) else None
        if found is None:
            return node
        made = found.copy()
        made.set("alias", node.args.get("alias") or made.args["alias"])
        return made

    for given in parse_query(match.select, origin).ctes:
        body, alias = given.this.transform(write), given.args["alias"].copy()
        written[given.alias.lower()] = exp.Subquery(this=body, alias=alias)
    made: exp.Query = source.transform(write)  # type: ignore[assignment]
    return made


def _numbered(
    relation: exp.Query, match: MatchDefinition, analyse: Analyse, origin: Origin
) -> exp.Select:
    """The relation's rows, each with its position and its time."""
    columns = [column for column, _ in analyse(sql_of(relation), origin)]
    order = [phrase.sql for phrase in match.order]
    # Events with the same timestamp are ordered by their position in the log.
    order += [place for place in (PARTITION, OFFSET) if place in columns]
    keys = ", ".join(f"`{key}`" for key in match.keys) or "1"
    number = f"row_number() OVER (PARTITION BY {keys} ORDER BY {', '.join(order)})"
    items = [f"`{column}`" for column in columns if not column.startswith("_")]
    items += [
        f"CAST(0 AS INT) AS {PARTITION}",
        f"CAST({number} AS BIGINT) AS {OFFSET}",
        f"TIMESTAMP '1970-01-01 00:00:00' AS {ARRIVED_AT}",
        f"FALSE AS {LATE}",
        f"CAST(0 AS BIGINT) AS {LATENESS}",
        f"{_row_time(relation, match, analyse) or f'timestamp_micros({number})'} AS {ROW_TIME}",
    ]
    made = relation.copy()
    made.set("expressions", parse_query(f"SELECT {', '.join(items)}", origin).expressions)
    whole = exp.select("*").from_(exp.alias_(exp.Subquery(this=made), ROWS, table=True))
    assert isinstance(whole, exp.Select)
    return whole


def _row_time(relation: exp.Query, match: MatchDefinition, analyse: Analyse) -> str | None:
    """SQL of the timestamp that WITHIN measures; None without WITHIN."""
    if match.within_us is None:
        return None
    first = match.order[0]
    made = relation.copy()
    words = first.sql.split()
    sql = first.sql.removesuffix(words[-1]) if words[-1].upper() in {"ASC", "DESC"} else first.sql
    made.set("expressions", parse_query(f"SELECT {sql} AS e", first.origin).expressions)
    [(_, type)] = analyse(sql_of(made), first.origin)
    if type != "timestamp" or words[-1].upper() == "DESC":
        raise Unsupported(
            f"WITHIN requires ORDER BY a timestamp, ascending; got ORDER BY {first.sql}",
            hint="order by a TIMESTAMP first, ascending.",
            origin=first.origin,
        )
    return sql
