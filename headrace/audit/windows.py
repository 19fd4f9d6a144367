"""Windows in DuckDB's SQL, computed in another way than the engine does.

Here an event is put into its windows at once: a sliding window makes one row of an event for each
window that holds it, and a session is found among all events of its key and joined to them. Nothing
is kept in parts, so nothing can be put together wrongly. tests/audit/test_oracle.py compares both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from headrace.core.time import duration_us, from_iso

# The names of what is joined begin with '_', since it stands beside the columns of a stream.
NAMES = ("window", "session_window", "landmark_window")


@dataclass(frozen=True, slots=True)
class DuckWindows:
    """The windows of a definition in DuckDB: edges, the join that makes them, and the condition of
    an event to be in one.
    """

    start: str
    end: str
    condition: str
    join: str = ""

    def edge(self, name: str) -> exp.Expr:
        text = self.start if name == "start" else self.end
        return exp.maybe_parse(text, dialect="duckdb")

    def apply(self, select: exp.Expr) -> None:
        """Put the join and the condition into a SELECT."""
        if self.join:
            parsed: exp.Expr = exp.maybe_parse(f"SELECT 1 FROM t {self.join}", dialect="duckdb")
            select.append("joins", parsed.args["joins"][0])
        if isinstance(select, exp.Select):
            select.where(exp.maybe_parse(self.condition, dialect="duckdb"), copy=False)


def is_window(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in NAMES


def windows_of(call: exp.Expr, select: exp.Select, keys: Sequence[exp.Expr]) -> DuckWindows:
    """The windows of a call in a SELECT that is also grouped by `keys`."""
    time = f"epoch_us({call.expressions[0].sql(dialect='duckdb')})"
    match call.name.lower():
        case "landmark_window":
            landmark = from_iso(call.expressions[1].name)
            return DuckWindows(
                f"make_timestamp({landmark})", "CAST(NULL AS TIMESTAMP)", f"{time} >= {landmark}"
            )
        case "session_window":
            return _sessions(call, time, select, keys)
    return _sliding(call, time)


def _sliding(call: exp.Expr, time: str) -> DuckWindows:
    size, *rest = (_length(argument.name) for argument in call.expressions[1:])
    slide, offset = (*rest, *(size, 0)[len(rest) :])
    newest = f"{time} - ((({time} - {offset}) % {slide}) + {slide}) % {slide}"
    if slide == size:
        start = f"make_timestamp({newest})"
        return DuckWindows(start, f"{start} + to_microseconds({size})", f"{time} IS NOT NULL")
    series = f"generate_series({newest} - {size // slide * slide}, {newest}, {slide})"
    start = "make_timestamp(_w._us)"
    return DuckWindows(
        start,
        f"{start} + to_microseconds({size})",
        f"_w._us + {size} > {time}",
        f"CROSS JOIN LATERAL (SELECT unnest({series}) AS _us) AS _w",
    )


def _sessions(
    call: exp.Expr, time: str, select: exp.Select, keys: Sequence[exp.Expr]
) -> DuckWindows:
    gap = call.expressions[1].sql(dialect="duckdb")
    moment = call.expressions[0].sql(dialect="duckdb")
    end = f"epoch_us({moment} + TRY_CAST({gap} AS INTERVAL))"
    names = [f"_g{n}" for n in range(len(keys))]
    items = [f"{key.sql(dialect='duckdb')} AS _g{n}" for n, key in enumerate(keys)]
    bare = exp.Select(
        **{k: select.args[k].copy() for k in ("from_", "where") if select.args.get(k)},
        **{k: [v.copy() for v in select.args.get(k) or []] for k in ("joins", "laterals")},
    )
    bare.where(exp.maybe_parse(f"{end} > {time}", dialect="duckdb"), copy=False)
    body = bare.sql(dialect="duckdb").partition("FROM")[2]
    events = f"SELECT {', '.join([*items, f'{time} AS _f', f'{end} AS _t'])} FROM{body}"
    by = f"PARTITION BY {', '.join(names)} " if names else ""
    reached = f"max(_t) OVER ({by}ORDER BY _f ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    marked = f"SELECT *, coalesce(_f > {reached}, true)::INT AS _opens FROM ({events})"
    # Events with the same timestamp are in one session, whichever of them opens it.
    number = f"sum(_opens) OVER ({by}ORDER BY _f) AS _s"
    numbered = f"SELECT *, {number} FROM ({marked})"
    group = ", ".join([*names, "_s"])
    sessions = f"SELECT {group}, min(_f) AS _f, max(_t) AS _t FROM ({numbered}) GROUP BY {group}"
    same = [
        f"_w._g{n} IS NOT DISTINCT FROM {key.sql(dialect='duckdb')}" for n, key in enumerate(keys)
    ]
    within = " AND ".join([*same, f"{time} >= _w._f", f"{time} < _w._t"])
    return DuckWindows(
        "make_timestamp(_w._f)",
        "make_timestamp(max(_w._t))",
        f"{end} > {time}",
        f"JOIN ({sessions}) AS _w ON {within}",
    )


def _length(text: str) -> int:
    sign = -1 if text.strip().startswith("-") else 1
    return sign * duration_us(text.strip().removeprefix("-"))
