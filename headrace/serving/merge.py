"""The seam, as SQL in the store: generation rows and speed rows of a key become one.

A view has two tables with the same key and partial columns: `generation` (batch, up to the
boundary) and `speed` (one row a key and group of epochs, after the boundary). `merged` is their
union, merged:
    merge(batch(log[:b]), speed(log[b:e])) = batch(log[:e])
All of it is plain SQL but for states, whose functions every connection of ours has
(serving/states). tests/laws/test_seam.py checks the law.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.compile.plan import KeyPlan, PartialPlan, ViewPlan
from headrace.compile.windows import Span, coalesced, from_column, spread
from headrace.core.aggregate import Merge
from headrace.core.schema import Type
from headrace.core.storage import Storage


def generation_table(name: str, version: str) -> str:
    return f'"_generation_{name}_{version}"'


def speed_table(name: str, version: str) -> str:
    return f'"_speed_{name}_{version}"'


def values_table(name: str, version: str) -> str:
    """The values that batch has counted, for exact count(DISTINCT)."""
    return f'"_values_{name}_{version}"'


def staged_name(table: str) -> str:
    """The table beside it, in which a build waits for its promotion."""
    return table[:-1] + '_staged"'


def columns_of(plan: ViewPlan) -> list[str]:
    """Key and partial columns, in the order in which rows are written."""
    return [key.column for key in plan.keys] + [c for p in plan.partials for c in p.columns]


def create_tables(plan: ViewPlan, generation: str, speed: str, values: str) -> list[str]:
    """The statements that make a view's tables."""
    keys = [f"{key.column} {_storage(key)}" for key in plan.keys]
    partials = [
        f"{c} {s}" for p in plan.partials for c, s in zip(p.columns, p.storages, strict=True)
    ]
    columns = ", ".join([*keys, *partials])
    columns = f", {columns}" if columns else ""
    statements = [
        f"CREATE TABLE IF NOT EXISTS {generation} (_key TEXT PRIMARY KEY{columns})",
        f"CREATE TABLE IF NOT EXISTS {speed} "
        f"(_key TEXT NOT NULL, _group INTEGER NOT NULL{columns}, PRIMARY KEY (_key, _group))",
    ]
    if plan.counted:
        statements.append(
            f"CREATE TABLE IF NOT EXISTS {values} (_column TEXT, _key TEXT, _value, "
            "PRIMARY KEY (_column, _key, _value)) WITHOUT ROWID"
        )
    for table in (generation, speed):
        statements += _indexes(plan, table)
    return statements


def _indexes(plan: ViewPlan, table: str) -> list[str]:
    plain = plan.plain_keys
    windows = [key.column for key in plan.keys if key.window]
    indexes = [columns for columns in ([*plain, *windows] if plain else [], windows) if columns]
    bare = table.strip('"')
    return [
        f'CREATE INDEX IF NOT EXISTS "{bare}_{n}" ON {table} ({", ".join(columns)})'
        for n, columns in enumerate(indexes)
    ]


def _storage(key: KeyPlan) -> str:
    return "INTEGER" if key.window else Storage(Type.of(key.type)).column


def upsert(plan: ViewPlan, table: str, source: str, *, grouped: bool) -> str:
    """Merge rows of `source` (a VALUES clause or SELECT) into a table by key."""
    columns = ["_key", *(["_group"] if grouped else []), *columns_of(plan)]
    sets = [f"{c} = {sql}" for p in plan.partials for c, sql in _merge_two(p)]
    action = f"DO UPDATE SET {', '.join(sets)}" if sets else "DO NOTHING"
    target = "_key, _group" if grouped else "_key"
    into = f"INSERT INTO {table} AS old ({', '.join(columns)})"
    return f"{into} {source} ON CONFLICT ({target}) {action}"


def _merge_two(partial: PartialPlan) -> list[tuple[str, str]]:
    """(column, SQL over old.* and excluded.*) for two partials of one key; NULL is zero."""
    columns = partial.columns
    olds, news = [f"old.{c}" for c in columns], [f"excluded.{c}" for c in columns]
    old, new = olds[0], news[0]
    match Merge(partial.merge):
        case Merge.SUM:
            return [(columns[0], f"coalesce({old} + {new}, {old}, {new})")]
        case Merge.MIN | Merge.MAX as merge:
            return [(columns[0], f"coalesce({merge}({old}, {new}), {old}, {new})")]
        case Merge.MOMENTS:
            return list(zip(columns, _merge_moments(olds, news), strict=True))
        case Merge.MAX_BY | Merge.MIN_BY as merge:
            sign = ">" if merge is Merge.MAX_BY else "<"
            later = f"{news[1]} = {olds[1]} AND {news[2]} > {olds[2]}"
            better = f"{olds[2]} IS NULL OR {news[1]} {sign} {olds[1]} OR {later}"
            wins = f"{news[2]} IS NOT NULL AND ({better})"
            pairs = zip(columns, olds, news, strict=True)
            return [(c, f"CASE WHEN {wins} THEN {n} ELSE {o} END") for c, o, n in pairs]
        case Merge.COUNTED:
            # It is brought up to date by who counts (serving/generations.py).
            return [(columns[0], old)]
        case state:
            return [(columns[0], f"merge_{state}({old}, {new})")]


def _merge_moments(olds: list[str], news: list[str]) -> list[str]:
    """Chan's merge of counts, means and squared distances: stable for any sizes."""
    (n1, mean1, m1), (n2, mean2, m2) = olds, news
    total = f"nullif(coalesce({n1}, 0) + coalesce({n2}, 0), 0)"
    step = f"({mean2} - {mean1})"
    mean = f"{mean1} + {step} * {n2} / {total}"
    spread = f"{m1} + {m2} + {step} * {step} * {n1} * {n2} / {total}"
    return [
        f"coalesce({n1} + {n2}, {n1}, {n2})",
        f"coalesce({mean}, {mean1}, {mean2})",
        f"coalesce({spread}, {m1}, {m2})",
    ]


def merged(plan: ViewPlan, sources: Sequence[str], *, key: bool = False) -> str:
    """One row a key from several sources, each a SELECT of `_group`, key and partial columns; with
    `key`, each has `_key` too.
    """
    keys = [key.column for key in plan.keys]
    over = f"PARTITION BY {', '.join(keys)}" if keys else ""
    steps = [step for partial in plan.partials for step in _before_merge(partial, over)]
    rows = " UNION ALL ".join(sources)
    if plan.joins:
        rows = coalesced(rows, plan.joins, plan.plain_keys)
    if steps:
        rows = f"SELECT *, {', '.join(steps)} FROM ({rows})"
    items = keys + [
        f"{sql} AS {column}"
        for partial in plan.partials
        for column, sql in zip(partial.columns, _merge_many(partial), strict=True)
    ]
    items += ["max(_key) AS _key"] if key else []
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join([*items, 'max(_group) AS _group'])} FROM ({rows}){group}"


def source(plan: ViewPlan, table: str, *, group: str, where: str = "", key: bool = False) -> str:
    """The rows of one table as a source of `merged`."""
    columns = [f"{c} AS {from_column(c)}" if c == plan.joins else c for c in columns_of(plan)]
    columns = [f"{group} AS _group", *columns, *(["_key"] if key else [])]
    return f"SELECT {', '.join(columns)} FROM {table}" + (f" WHERE {where}" if where else "")


def in_windows(plan: ViewPlan, rows: str, span: Span | None) -> str:
    """A source whose rows are panes, with a row for each window that a pane is in."""
    if plan.windowed is None or not plan.windowed[1].reach:
        return rows
    return spread(rows, *plan.windowed, ["_group", *columns_of(plan)], span)


def _before_merge(partial: PartialPlan, over: str) -> list[str]:
    """Columns that need all rows of a key at once, so that the merge itself is a plain
    aggregate."""
    first = partial.columns[0]
    match Merge(partial.merge):
        case Merge.MOMENTS:
            # Distances are taken from the mean of the largest part: then equal means have none.
            n, mean, _ = partial.columns
            return [f"first_value({mean}) OVER ({over} ORDER BY {n} DESC) AS {first}_all"]
        case Merge.MAX_BY | Merge.MIN_BY as merge:
            x, y, place = partial.columns
            direction = "DESC" if merge is Merge.MAX_BY else "ASC"
            order = f"ORDER BY {place} IS NULL, {y} {direction}, {place} DESC"
            firsts = f"OVER ({over} {order})"
            return [f"first_value({column}) {firsts} AS {column}_all" for column in (x, place)]
    return []


def _merge_many(partial: PartialPlan) -> list[str]:
    """The SQL aggregate for each column of a partial."""
    columns = partial.columns
    match Merge(partial.merge):
        case Merge.SUM | Merge.MIN | Merge.MAX as merge:
            return [f"{merge}({columns[0]})"]
        case Merge.MOMENTS:
            n, mean, spread = columns
            distance = f"({mean} - {n}_all)"
            shift, total = f"sum({n} * {distance})", f"nullif(sum({n}), 0)"
            whole = f"sum({spread} + {n} * {distance} * {distance}) - {shift} * {shift} / {total}"
            return [f"sum({n})", f"max({n}_all) + {shift} / {total}", whole]
        case Merge.MAX_BY | Merge.MIN_BY as merge:
            x, y, place = columns
            return [f"max({x}_all)", f"{merge.value[:3]}({y})", f"max({place}_all)"]
        case Merge.COUNTED:
            # Numbers of distinct values do not add up: with another row beside it, it says nothing.
            return [f"CASE WHEN count(*) = 1 THEN max({columns[0]}) END"]
        case state:
            return [f"merge_{state}({columns[0]})"]
