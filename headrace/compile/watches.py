"""Watches that differ in constants alone have one shape, and are evaluated together.

A shape is the SELECT without the constants of its comparisons. It is compiled to a stream that is
joined with a hidden table of constants, one row per watch:

    SELECT prices.*, _constants._watch FROM prices
    JOIN _bounds ON price < _bounds._c1                  -- drops events that match no watch
    JOIN _constants ON megapixel >= _constants._c0 AND price < _constants._c1 AND (its places)

A watch is valid from its start position to its end position, so batch and speed find the same
matches whenever a watch was added. tests/compile/test_watches.py checks the shapes and errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache

import msgspec
from sqlglot import exp

from headrace.compile.destinations import destinations_of
from headrace.compile.determinism import refuse_relative_times
from headrace.compile.plan import Plan, ShapePlan, WatchPlan, digest
from headrace.core.errors import HeadraceError, Unsupported
from headrace.core.event import OFFSET, PARTITION
from headrace.core.origin import Origin
from headrace.core.rule import hidden, matches_of, watched_of
from headrace.core.schema import Column, Schema, Type
from headrace.define.definitions import (
    Definition,
    NamedExpression,
    QueryDefinition,
    TableDefinition,
    WatchDefinition,
)
from headrace.define.dialect import parse_query, parse_select, sql_of
from headrace.define.project import Project

CONSTANTS, BOUNDS = "_constants", "_bounds"
WATCH, DONE = "_watch", "_done"
MATCHED = {WATCH: "bigint", DONE: "int"}  # columns of a match besides its row
FOLDER = "watches"  # in the state folder: the constants that Spark reads
_LESS = (exp.LT, exp.LTE)
_MORE = (exp.GT, exp.GTE)
_COMPARED = (exp.EQ, exp.NEQ, *_LESS, *_MORE, exp.Like)
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE,
}  # fmt: skip
_HIDDEN_NAME = re.compile(r"(?:stream |view )?'_(?:matches|watched)_(\w+)'")
_EXACT = 2**53  # whole numbers up to this are the same as DOUBLE
ConstantValue = float | str


class WatchShape(msgspec.Struct, frozen=True):
    """The common part of several watches. `select` is the SELECT without its WHERE."""

    select: str
    where: str
    done: str
    types: tuple[str, ...]  # of the constants: DOUBLE or STRING
    bounds: tuple[tuple[int, str, str], ...]  # constant, min or max, and the comparison with it

    @property
    def key(self) -> str:
        return digest(self)


@dataclass(frozen=True, slots=True)
class ShapedWatch:
    """A watch as a shape and its constants."""

    watch: WatchDefinition
    shape: WatchShape
    constants: tuple[ConstantValue, ...]


@lru_cache(maxsize=20_000)
def shape_watch(watch: WatchDefinition) -> ShapedWatch:
    """Extract the constants of a watch."""
    select = parse_query(watch.query, watch.query_origin)
    if not isinstance(select, exp.Select) or not select.args.get("from_"):
        raise Unsupported(
            f"{watch.said} must be a single SELECT from a stream", origin=watch.origin
        )
    for part in ("group", "having", "order", "limit", "distinct", "with_"):
        if select.args.get(part):
            raise Unsupported(
                f"{watch.said} is not stateless: it has {part.strip('_').upper()}",
                hint="a watch can only select and filter the events of a stream, one at a time.",
                origin=watch.query_origin,
            )
    if select.find(exp.Window):
        raise Unsupported(
            f"{watch.said} contains a running aggregate",
            hint="define it in a CREATE STREAM … AS, and watch that stream.",
            origin=watch.query_origin,
        )
    _qualify_stars(select)
    extractor = _ConstantExtractor()
    where = select.args.pop("where", None)
    condition = extractor.extract(where.this) if where else exp.true()
    done = extractor.extract(_when(watch.when, select)) if watch.when else exp.false()
    bounds = tuple(_bounds(condition))
    shape = WatchShape(
        sql_of(select), sql_of(condition), sql_of(done), tuple(extractor.types), bounds
    )
    return ShapedWatch(watch, shape, tuple(extractor.constants))


def _qualify_stars(select: exp.Select) -> None:
    """Qualify *, so that it does not include the columns of the constants."""
    tables = [select.args["from_"].this, *(join.this for join in select.args.get("joins") or [])]
    names = [table.alias_or_name for table in tables]
    for item in list(select.expressions):
        if isinstance(item, exp.Star):
            stars = [exp.Column(this=exp.Star(), table=exp.to_identifier(name)) for name in names]
            at = select.expressions.index(item)
            select.expressions[at : at + 1] = stars
    select.set("expressions", select.expressions)


def _when(when: NamedExpression, select: exp.Select) -> exp.Expr:
    """The condition over a matched row as one over events: outputs are replaced by their values."""
    text = parse_query(f"SELECT 1 WHERE {when.sql}", when.origin)
    refuse_relative_times(text, when.origin)
    condition: exp.Expr = exp.paren(text.args["where"].this)
    made = {item.alias.lower(): item.unalias() for item in select.expressions if item.alias}
    for column in list(condition.find_all(exp.Column)):
        if not column.table and column.name.lower() in made:
            column.replace(exp.paren(made[column.name.lower()].copy()))
    return condition


class _ConstantExtractor:
    """Replaces constants by columns of the table of constants."""

    def __init__(self) -> None:
        self.constants: list[ConstantValue] = []
        self.types: list[str] = []

    def extract(self, condition: exp.Expr) -> exp.Expr:
        whole = exp.paren(condition.copy())
        for node in [n for n in whole.walk() if isinstance(n, (*_COMPARED, exp.Between))]:
            if not any(node.find_all(exp.Column)):
                continue
            for side in ("this", "expression", "low", "high"):
                value = _constant(node.args.get(side))
                if value is not None:
                    node.set(side, self._column(value))
        taken: exp.Expr = whole.this
        return taken

    def _column(self, value: ConstantValue) -> exp.Column:
        self.constants.append(value)
        self.types.append("STRING" if isinstance(value, str) else "DOUBLE")
        return exp.column(f"_c{len(self.constants) - 1}", table=CONSTANTS)


def _constant(node: exp.Expr | None) -> ConstantValue | None:
    """The value of a number or string literal; None if it stays in the shape."""
    sign, literal = (-1, node.this) if isinstance(node, exp.Neg) else (1, node)
    if not isinstance(literal, exp.Literal):
        return None
    if literal.is_string:
        return literal.name if sign > 0 else None
    try:
        value = float(literal.name)
    except ValueError:
        return None
    return sign * value if abs(value) <= _EXACT else None


def _bounds(condition: exp.Expr) -> Iterator[tuple[int, str, str]]:
    """The comparisons that hold, with the weakest constant, for all matches of all watches."""
    parts = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
    if any(isinstance(part, exp.EQ) and _number(part.expression) is not None for part in parts):
        return  # Spark finds the watches by an equi-join, which is faster
    for part in map(_turned, parts):
        number = _number(part.expression) if isinstance(part, (*_LESS, *_MORE)) else None
        if number is not None and not any(_number(c) is not None for c in part.this.walk()):
            bound = exp.column(f"_c{number}", table=BOUNDS)
            weakest = part.__class__(this=part.this.copy(), expression=bound)
            yield number, "max" if isinstance(part, _LESS) else "min", sql_of(weakest)


def _turned(part: exp.Expr) -> exp.Expr:
    """`100 > price` as `price < 100`."""
    part = part.unnest()
    if type(part) in _MIRRORED and _number(part.this) is not None:
        return _MIRRORED[type(part)](this=part.expression.copy(), expression=part.this.copy())
    return part


def _number(node: exp.Expr) -> int | None:
    found = isinstance(node, exp.Column) and node.table == CONSTANTS
    return int(node.name.removeprefix("_c")) if found else None


# A shape as definitions


def shapes_of(project: Project) -> dict[str, ShapedWatch]:
    """The shapes of a project's watches, each with the first watch that has it."""
    found: dict[str, ShapedWatch] = {}
    for watch in project.watches.values():
        made = shape_watch(watch)
        found.setdefault(made.shape.key, made)
    return found


def table_of(kind: str, shape: str) -> str:
    return f"{kind}_{shape}"


def expanded(project: Project) -> Project:
    """The project with each shape expanded: its tables, and the stream of its matches."""
    made = [
        definition
        for key, shape in shapes_of(project).items()
        for definition in _definitions(project, key, shape)
    ]
    return replace(project, definitions=(*project.definitions, *made)) if made else project


def _definitions(project: Project, key: str, made: ShapedWatch) -> Iterator[Definition]:
    source = parse_query(made.watch.query, made.watch.query_origin).args["from_"].this
    base = _base(project, source.name, made)
    stream = project.streams.get(base or "")
    many = stream.partitions if stream and stream.partitions else project.settings.log.partitions
    for kind in (CONSTANTS, BOUNDS) if made.shape.bounds else (CONSTANTS,):
        yield _table(project, kind, key, made, many)
    yield _match_query(key, made, source.alias_or_name, many)


def _base(project: Project, name: str, made: ShapedWatch) -> str | None:
    """The declared stream that is read; None if there is none, which another pass refuses."""
    known = {d.name.lower(): d.name for d in project.definitions}
    name = known.get(name.lower(), name)
    query = project.queries.get(name)
    if query is None or query.kind != "stream":
        return name if name in project.streams else None
    tables = [t.name for t in parse_query(query.query, query.query_origin).find_all(exp.Table)]
    bases = [base for table in tables if (base := _base(project, table, made))]
    if len(bases) > 1:
        raise Unsupported(
            f"{made.watch.said} reads joined streams",
            hint="a watch reads one stream and any number of tables.",
            origin=made.watch.query_origin,
        )
    return bases[0] if bases else None


@contextmanager
def errors_name_watches(project: Project) -> Iterator[None]:
    """In errors, replace the names of a shape's hidden definitions by that of its first watch."""
    try:
        yield
    except HeadraceError as error:
        shapes = shapes_of(project)

        def named(found: re.Match[str]) -> str:
            return shapes[found[1]].watch.said if found[1] in shapes else found[0]

        said = [_HIDDEN_NAME.sub(named, text or "") for text in (error.message, error.hint)]
        error.message, error.hint, error.args = said[0], said[1] or None, (said[0],)
        raise


def _table(project: Project, kind: str, key: str, made: ShapedWatch, many: int) -> TableDefinition:
    columns = [Column(f"_c{n}", Type(type)) for n, type in enumerate(made.shape.types)]
    if kind == CONSTANTS:
        edges = [f"_{edge}{n}" for n in range(many) for edge in ("from", "to")]
        columns += [Column(name, Type("BIGINT")) for name in (WATCH, *edges)]
    location = f"{project.settings.state}/{FOLDER}/{table_of(kind, key).lstrip('_')}.json"
    schema = Schema(tuple(columns))
    return TableDefinition(table_of(kind, key), schema, "json", location, {}, made.watch.origin)


def _match_query(key: str, made: ShapedWatch, stream: str, many: int) -> QueryDefinition:
    """The stream of a shape's matches; `stream` is the alias of the stream in its query."""
    watch, shape = made.watch, made.shape
    select = parse_select(shape.select, watch.query_origin)
    items = f"{CONSTANTS}.{WATCH} AS {WATCH}, CAST(coalesce({shape.done}, FALSE) AS INT) AS {DONE}"
    for item in parse_query(f"SELECT {items}", watch.query_origin).expressions:
        select.append("expressions", item)
    if shape.bounds:
        weakest = " AND ".join(f"({sql})" for _, _, sql in shape.bounds)
        select = _joined(select, BOUNDS, key, weakest)
    places = " AND ".join(f"{_place(stream, edge, many)}" for edge in ("from", "to"))
    select = _joined(select, CONSTANTS, key, f"({shape.where}) AND {places}")
    return QueryDefinition(
        matches_of(key), "stream", sql_of(select), watch.origin, watch.query_origin
    )


def _joined(select: exp.Select, kind: str, key: str, on: str) -> exp.Select:
    condition = parse_query(f"SELECT 1 WHERE {on}", Origin("watch", 1)).args["where"].this
    table = exp.to_table(table_of(kind, key)).as_(kind)
    return select.join(table, on=condition, copy=False)


def _place(stream: str, edge: str, many: int) -> str:
    sign = ">=" if edge == "from" else "<"
    cases = " ".join(f"WHEN {n} THEN {CONSTANTS}._{edge}{n}" for n in range(many))
    return f"{stream}.{OFFSET} {sign} CASE {stream}.{PARTITION} {cases} END"


def shape_plan(plan: Plan, key: str, made: ShapedWatch) -> ShapePlan:
    view = plan.view(watched_of(key))
    assert view is not None
    columns = tuple(output.name for output in view.outputs if not hidden(output.name))
    kinds = (CONSTANTS, BOUNDS) if made.shape.bounds else (CONSTANTS,)
    return ShapePlan(
        key,
        " ".join((made.shape.select, "WHERE", made.shape.where)),
        columns,
        (view.stream,),
        made.shape.types,
        tuple((number, which) for number, which, _ in made.shape.bounds),
        tuple(table_of(kind, key) for kind in kinds),
    )


def watch_plan(project: Project, plan: Plan, made: ShapedWatch) -> WatchPlan:
    """The plan of a watch; refused if one of its destinations is not valid."""
    watch = made.watch
    return WatchPlan(
        watch.name,
        watch.text,
        made.shape.key,
        made.constants,
        watch.severity.value,
        destinations_of(project, plan, watch),
        watch.until_us,
        watch.matches_max,
        str(watch.origin),
    )
