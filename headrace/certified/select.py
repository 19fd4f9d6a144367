"""A whole SELECT of Spark's over named relations, compiled to DuckDB.

Names are resolved here, as Spark resolves them: ORDER BY means an output before a column, GROUP BY
and HAVING a column before an output. Every column has a type before DuckDB sees it, so nothing is
left to DuckDB's own implicit casts. tests/certified/test_select.py compares queries with Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from headrace.certified.casts import cast
from headrace.certified.expression import SMALLER, SQL_CHARACTERS_MAX, Expressions
from headrace.certified.function_table import OFFERED, FunctionTable
from headrace.certified.nested import exploded, no_field
from headrace.certified.relation import AnswerColumn, ReadRelation
from headrace.certified.scope import AliasedRelation, Scope, of_column
from headrace.certified.typed import TypedSql, not_available, quoted
from headrace.certified.types import VOID, can_group, has_equality, wider
from headrace.core.aggregate import largest_error
from headrace.core.errors import BadQuery, HeadraceError, LimitReached, UnknownColumn, did_you_mean
from headrace.core.origin import Origin
from headrace.define.dialect import sql_of

DEPTH_MAX = 32  # queries within queries


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    sql: str
    columns: tuple[AnswerColumn, ...]
    relations: tuple[str, ...]  # the named ones that it reads, in order of their first use


# The relation of a name in lower case; None if there is none.
Find = Callable[[str], ReadRelation | None]


def compile_query(
    query: exp.Query,
    find: Find,
    known: Iterable[str] = (),
    origin: Origin | None = None,
    functions: FunctionTable = OFFERED,
) -> CompiledQuery:
    """Compile a query; `known` are the names that an error may suggest."""
    context = _Context(find, tuple(known), functions)
    try:
        made = _query(query, _Environment(context))
    except RecursionError as error:
        raise BadQuery("the query is nested too deeply", hint=SMALLER, origin=origin) from error
    except HeadraceError as error:
        error.origin = error.origin or origin
        raise
    return CompiledQuery(made.sql, made.columns, tuple(context.used))


@dataclass(slots=True)
class _Context:
    find: Find
    known: tuple[str, ...]
    functions: FunctionTable
    used: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Environment:
    """Where a query stands: CTEs that it may name, and the query around it."""

    context: _Context
    tables: Mapping[str, ReadRelation] = field(default_factory=dict)
    outer: Scope | None = None
    depth: int = 0

    def within(self, tables: Mapping[str, ReadRelation], outer: Scope | None) -> _Environment:
        if self.depth >= DEPTH_MAX:
            raise BadQuery(f"subqueries are nested more than {DEPTH_MAX} levels deep")
        return _Environment(self.context, tables, outer, self.depth + 1)

    def relation(self, table: exp.Table) -> ReadRelation:
        name = table.name.lower()
        if not table.db and name in self.tables:
            return self.tables[name]
        found = None if table.db else self.context.find(name)
        if found is None:
            hint = did_you_mean(table.name, self.context.known)
            raise BadQuery(f"there is no view '{table.name}'", hint=hint)
        self.context.used[name] = None
        return found


class _Names:
    """The names of one SELECT; `given` are outputs that a clause may mean too."""

    def __init__(self, scope: Scope, environment: _Environment) -> None:
        self.scope, self.environment = scope, environment
        self.given: dict[str, TypedSql] = {}
        self.given_first = False

    def column(self, node: exp.Column) -> TypedSql:
        output = self.given.get(node.name.lower()) if not node.table else None
        # Inside an aggregate a name is always a column.
        if output and self.given_first and not node.find_ancestor(exp.AggFunc):
            return output
        found = self.scope.find(node) or output
        if found is None:
            raise self._unknown(node)
        return found

    def subquery(self, query: exp.Expr) -> tuple[str, list[TypedSql]]:
        inner = self.environment.within(self.environment.tables, self.scope)
        made = _query(query, inner)
        return made.sql, [of_column("", column) for column in made.columns]

    def _unknown(self, node: exp.Column) -> HeadraceError:
        *before, last = [part.name for part in node.parts]
        whole = self.scope.find(exp.column(*reversed(before))) if before else None
        if whole is not None:
            return no_field(whole, last)
        names = list(dict.fromkeys([*self.scope.names(), *self.given]))
        return UnknownColumn(
            f"there is no column '{node.sql()}'",
            detail=f"available columns: {', '.join(names)}." if names else None,
            hint=did_you_mean(node.name, names),
        )


def _query(query: exp.Expr, environment: _Environment) -> ReadRelation:
    made = _whole_query(query, _with(query, environment))
    # A CTE is written out wherever it is named.
    if len(made.sql) > SQL_CHARACTERS_MAX:
        raise LimitReached("the expanded query is too large", hint=SMALLER)
    return made


def _whole_query(query: exp.Expr, environment: _Environment) -> ReadRelation:
    match query:
        case exp.Select():
            return _Select(query, environment).compile()
        case exp.Subquery():
            return _ordered(query, _query(query.this, environment), environment)
        case exp.Union() | exp.Except() | exp.Intersect():
            return _ordered(query, _set_operation(query, environment), environment)
    raise not_available(f"'{query.key}'")


def _with(query: exp.Expr, environment: _Environment) -> _Environment:
    """The environment with the query's CTEs, each written out where it is named."""
    clause = query.args.get("with_")
    if clause is None:
        return environment
    if clause.args.get("recursive"):
        raise not_available("WITH RECURSIVE")
    tables = dict(environment.tables)
    for cte in clause.expressions:
        made = _query(cte.this, environment.within(tables, environment.outer))
        tables[cte.alias.lower()] = _renamed(made, cte.args["alias"])
    return environment.within(tables, environment.outer)


def _wrong_names(expected: int, given: int) -> BadQuery:
    return BadQuery(f"the number of column names in the alias must be {expected}, got {given}")


def _renamed(relation: ReadRelation, alias: exp.TableAlias | None) -> ReadRelation:
    """The relation with the column names that its alias gives."""
    names = [column.name for column in (alias.columns if alias else [])]
    if not names:
        return ReadRelation(f"({relation.sql})", relation.columns)
    if len(names) != len(relation.columns):
        raise _wrong_names(len(relation.columns), len(names))
    columns = tuple(
        replace(column, name=name) for name, column in zip(names, relation.columns, strict=True)
    )
    items = ", ".join(
        f"{quoted(old.name)} AS {quoted(new.name)}"
        for old, new in zip(relation.columns, columns, strict=True)
    )
    return ReadRelation(f"(SELECT {items} FROM ({relation.sql}))", columns)


def _set_operation(query: exp.SetOperation, environment: _Environment) -> ReadRelation:
    sides = [_query(side, environment) for side in (query.this, query.expression)]
    left, right = sides
    if len(left.columns) != len(right.columns):
        raise BadQuery(
            f"both sides of {query.key.upper()} must have the same number of columns, got "
            f"{len(left.columns)} and {len(right.columns)}"
        )
    columns = tuple(map(_either, left.columns, right.columns))
    word = f"{query.key.upper()}{'' if query.args.get('distinct') else ' ALL'}"
    if word != "UNION ALL":
        _refuse_ungrouped(word, columns)
    return ReadRelation(f" {word} ".join(_as_columns(side, columns) for side in sides), columns)


def _refuse_ungrouped(word: str, columns: Iterable[AnswerColumn]) -> None:
    """Rows are compared with each other, so each column must have an equality."""
    if unequal := next((c.type for c in columns if not can_group(c.type)), None):
        raise not_available(f"{word} of {unequal}")


def _either(a: AnswerColumn, b: AnswerColumn) -> AnswerColumn:
    type = wider(a.type, b.type)
    if type is None:
        raise not_available(f"a column of type {a.type} on one side and {b.type} on the other")
    estimate = largest_error([a.estimate, b.estimate])
    return AnswerColumn(a.name, type, estimate, a.key and b.key, a.lists | b.lists)


def _as_columns(side: ReadRelation, columns: tuple[AnswerColumn, ...]) -> str:
    items = [
        f"{cast(of_column(quoted(old.name), old), new.type).sql} AS {quoted(new.name)}"
        for old, new in zip(side.columns, columns, strict=True)
    ]
    return f"(SELECT {', '.join(items)} FROM ({side.sql}))"


def _ordered(query: exp.Expr, made: ReadRelation, environment: _Environment) -> ReadRelation:
    """A query in brackets or a set operation, with its own ORDER BY and LIMIT."""
    scope = Scope([AliasedRelation("_whole", made.columns)], outer=environment.outer)
    expressions = Expressions(_Names(scope, environment), environment.context.functions)
    order = query.args.get("order")
    places = [of_column(f'"_whole".{quoted(c.name)}', c) for c in made.columns]
    said = _order_by(order, expressions, places) if order else ""
    said += _limited(query)
    return (
        ReadRelation(f"SELECT * FROM ({made.sql}) AS _whole{said}", made.columns) if said else made
    )


def _order_by(order: exp.Order, expressions: Expressions, places: list[TypedSql]) -> str:
    items = [expressions.ordered(_place(item, places)) for item in order.expressions]
    return " ORDER BY " + ", ".join(items)


def _place(item: exp.Expr, places: list[TypedSql]) -> exp.Expr:
    """ORDER BY 2 means the second item, which is written out."""
    inner = item.this if isinstance(item, exp.Ordered) else item
    if not (isinstance(inner, exp.Literal) and not inner.is_string):
        return item
    found = _At(this=inner.name, typed=_placed(inner, places))
    if isinstance(item, exp.Ordered):
        item = item.copy()
        item.set("this", found)
        return item
    return found


def _placed(literal: exp.Literal, places: list[TypedSql]) -> TypedSql:
    number = int(literal.name) if literal.name.isdigit() else 0
    if not 1 <= number <= len(places):
        raise BadQuery(f"position {literal.name} is not in the select list")
    return places[number - 1]


class _At(exp.Column):
    """An item of the select list that is meant by its number."""

    arg_types = {"this": True, "typed": True}  # noqa: RUF012


def _limited(query: exp.Expr) -> str:
    said = ""
    for word in ("limit", "offset"):
        if clause := query.args.get(word):
            number = clause.expression
            if not (isinstance(number, exp.Literal) and number.name.isdigit()):
                raise BadQuery(f"{word.upper()} requires a whole number")
            said += f" {word.upper()} {number.name}"
    return said


_CLAUSES = {
    "with_", "kind", "expressions", "distinct", "from_", "joins", "where", "group", "having",
    "qualify", "windows", "order", "limit", "offset", "hint", "laterals",
}  # fmt: skip


_OF_A_TABLE = {"this", "db", "catalog", "alias"}


class _Select:
    """One SELECT."""

    def __init__(self, select: exp.Select, environment: _Environment) -> None:
        self.select, self.environment = select, environment
        self.scope = Scope(outer=environment.outer)
        self.names = _Names(self.scope, environment)
        self.expressions = _WithPlaces(self.names, environment.context.functions)

    def compile(self) -> ReadRelation:
        self._check_clauses()
        parts = [self._from(), self._where()]
        self._name_windows()
        self.expressions.grouped = _grouped_columns(self.select.args.get("group"))
        items = [pair for item in self.select.expressions for pair in self._items(item)]
        if not items:
            raise BadQuery("the select list is empty")
        places = [typed for _, typed in items]
        outputs = {name.lower(): typed for name, typed in items}
        parts.append(self._group(places, outputs))
        for word in ("having", "qualify"):
            parts.append(self._condition(word, outputs))
        columns = tuple(self._column(name, typed) for name, typed in items)
        parts.append(self._order(places, outputs))
        listed = ", ".join(f"{typed.sql} AS {quoted(name)}" for name, typed in items)
        distinct = self.select.args.get("distinct")
        if distinct:
            _refuse_ungrouped("DISTINCT", columns)
        word = "SELECT DISTINCT" if distinct else "SELECT"
        sql = f"{word} {listed}{''.join(parts)}{_limited(self.select)}"
        return _unique(ReadRelation(sql, columns))

    def _check_clauses(self) -> None:
        for word, value in self.select.args.items():
            if value and word not in _CLAUSES:
                raise not_available(f"'{word.strip('_').upper()}'")
        distinct = self.select.args.get("distinct")
        if distinct and distinct.args.get("on"):
            raise not_available("DISTINCT ON")

    def _name_windows(self) -> None:
        for window in self.select.args.get("windows") or []:
            name = window.name.lower()
            if name in self.expressions.windows:
                raise BadQuery(f"window '{window.name}' is defined twice")
            if window.args.get("alias"):
                raise not_available("a window based on another window")
            self.expressions.windows[name] = window

    @staticmethod
    def _column(name: str, typed: TypedSql) -> AnswerColumn:
        return AnswerColumn(
            name,
            typed.type,
            typed.estimate,
            typed.key,
            typed.lists,
            typed.bounds,
            typed.rounded,
        )

    # FROM

    def _from(self) -> str:
        clause = self.select.args.get("from_")
        if clause is None:
            return ""
        sql = f" FROM {self._source(clause.this)}"
        sql += "".join(self._join(join) for join in self.select.args.get("joins") or [])
        return sql + "".join(self._lateral(view) for view in self.select.args.get("laterals") or [])

    def _lateral(self, lateral: exp.Lateral) -> str:
        """LATERAL VIEW [OUTER] explode(list) t AS element."""
        if not lateral.args.get("view") or not isinstance(lateral.this, exp.Explode):
            raise not_available("LATERAL with anything but VIEW explode(…)")
        value = self.expressions.compile(lateral.this.this)
        sql, types = exploded(value)
        alias = lateral.args["alias"]
        said = [column.name for column in alias.columns]
        names = said or (["col"] if len(types) == 1 else ["key", "value"])
        if len(names) != len(types):
            raise _wrong_names(len(types), len(names))
        columns = tuple(
            AnswerColumn(name, type, value.estimate, lists=value.lists)
            for name, type in zip(names, types, strict=True)
        )
        name = alias.name or f"_lateral_{len(self.scope.sources)}"
        self.scope.sources.append(AliasedRelation(name, columns))
        listed = ", ".join(map(quoted, names))
        join = "LEFT JOIN LATERAL" if lateral.args.get("outer") else "JOIN LATERAL"
        return f" {join} ({sql}) AS {quoted(name)}({listed}) ON true"

    def _source(self, node: exp.Expr, *, shown: bool = True) -> str:
        alias = node.args.get("alias")
        match node:
            case exp.Table():
                if node.args.get("pivots"):
                    raise not_available("PIVOT", "write an aggregate with FILTER for each column.")
                if any(said for word, said in node.args.items() if word not in _OF_A_TABLE):
                    raise not_available("a relation with anything other than an alias")
                relation = self.environment.relation(node)
            case exp.Subquery():
                inner = self.environment.within(self.environment.tables, None)
                relation = _query(node.this, inner)
                relation = _ordered(node, relation, inner)
            case exp.Values():
                relation = _values(node, self.expressions)
            case _:
                raise not_available(f"'{node.key}' in FROM")
        name = node.alias_or_name or f"_source_{len(self.scope.sources)}"
        relation = _renamed(relation, alias)
        if any(source.alias.lower() == name.lower() for source in self.scope.sources):
            raise BadQuery(f"two relations are called '{name}'", hint="give one of them an alias.")
        self.scope.sources.append(AliasedRelation(name, relation.columns, shown))
        return f"{relation.sql} AS {quoted(name)}"

    def _join(self, join: exp.Join) -> str:
        side, kind = (join.args.get("side") or "").upper(), (join.args.get("kind") or "").upper()
        method, half = (join.args.get("method") or "").upper(), kind in {"SEMI", "ANTI"}
        if method not in {"", "NATURAL"}:
            raise not_available(f"{method} JOIN", "write the columns with ON.")
        word = f"{kind} JOIN" if half else " ".join(filter(None, (side, kind, "JOIN")))
        source = self._source(join.this)
        using = (
            self._in_common() if method else [node.name for node in join.args.get("using") or []]
        )
        if not half and not join.args.get("on") and not using:
            word = "CROSS JOIN"
        sql = f" {word} {source}"
        if using:
            sql += f" USING ({', '.join(map(self._merge, using))})"
        elif on := join.args.get("on"):
            sql += f" ON {self.expressions.condition(on).sql}"
        self.scope.sources[-1].shown = not half
        return sql

    def _in_common(self) -> list[str]:
        """The columns that a NATURAL JOIN is over."""
        *before, joined = self.scope.sources
        names = {column.name.lower() for column in joined.columns}
        known = [column.name.lower() for source in before for column in source.columns]
        found = [name for name in dict.fromkeys(known) if name in names]
        if not found:
            raise BadQuery("the sides of a NATURAL JOIN have no column in common")
        return found

    def _merge(self, name: str) -> str:
        """A column of USING, which is one for both sides."""
        found = [
            column
            for source in self.scope.sources
            for column in source.columns
            if column.name.lower() == name.lower()
        ]
        if len(found) < 2:
            raise UnknownColumn(
                f"the column '{name}' of USING must exist on both sides of the join"
            )
        if found[0].type != found[-1].type or not has_equality(found[0].type):
            types = f"{found[0].type} and {found[-1].type}"
            raise not_available(f"USING with columns of type {types}", "use ON.")
        self.scope.merged[name.lower()] = found[0]
        return quoted(found[0].name)

    # The select list

    def _items(self, item: exp.Expr) -> list[tuple[str, TypedSql]]:
        """The outputs of a select item, which may be several."""
        if item.is_star:
            return self._starred(item)
        inner = item.unalias()
        typed = self.expressions.compile(inner)
        name = item.alias or (inner.name if isinstance(inner, exp.Column) else sql_of(inner))
        # Later items may name it, as Spark's lateral aliases do.
        self.names.given.setdefault(name.lower(), typed)
        return [(name, typed)]

    def _starred(self, item: exp.Expr) -> list[tuple[str, TypedSql]]:
        star = item if isinstance(item, exp.Star) else item.this
        left_out = {node.name.lower() for node in star.args.get("except_") or []}
        if star.args.get("replace"):
            raise not_available("* REPLACE")
        wanted = item.table.lower() if isinstance(item, exp.Column) else None
        sources = [s for s in self.scope.sources if wanted in (None, s.alias.lower()) and s.shown]
        if wanted and not sources:
            raise BadQuery(f"there is no relation '{wanted}' in FROM")
        merged = {} if wanted else self.scope.merged
        found = [(c.name, of_column(quoted(c.name), c)) for c in merged.values()]
        for source in sources:
            found += [
                (column.name, of_column(source.sql_of(column), column))
                for column in source.columns
                if column.name.lower() not in merged
            ]
        return [(name, typed) for name, typed in found if name.lower() not in left_out]

    # Other clauses

    def _where(self) -> str:
        clause = self.select.args.get("where")
        return f" WHERE {self.expressions.condition(clause.this).sql}" if clause else ""

    def _group(self, places: list[TypedSql], outputs: Mapping[str, TypedSql]) -> str:
        group = self.select.args.get("group")
        if group is None:
            return ""
        self.names.given = dict(outputs)
        if group.args.get("all"):
            return " GROUP BY ALL"
        said = [self._grouped(item, places) for item in group.expressions]
        for word in ("rollup", "cube"):
            if group.args.get(word):  # GROUP BY a, b WITH ROLLUP
                return f" GROUP BY {word.upper()} ({', '.join(said)})"
        return f" GROUP BY {', '.join(said)}"

    def _grouped(self, item: exp.Expr, places: list[TypedSql]) -> str:
        match item:
            case exp.Rollup() | exp.Cube():
                inner = ", ".join(self._grouped(part, places) for part in item.expressions)
                return f"{item.key.upper()} ({inner})"
            case exp.GroupingSets():
                inner = ", ".join(self._grouped(part, places) for part in item.expressions)
                return f"GROUPING SETS ({inner})"
            case exp.Tuple():
                return f"({', '.join(self._grouped(part, places) for part in item.expressions)})"
        value = self.expressions.compile(_place(item, places))
        if not can_group(value.type):
            raise not_available(f"GROUP BY {value.type}", "group by a part of the value.")
        return value.sql

    def _condition(self, word: str, outputs: Mapping[str, TypedSql]) -> str:
        clause = self.select.args.get(word)
        if clause is None:
            return ""
        self.names.given = dict(outputs)
        return f" {word.upper()} {self.expressions.condition(clause.this).sql}"

    def _order(self, places: list[TypedSql], outputs: Mapping[str, TypedSql]) -> str:
        order = self.select.args.get("order")
        if order is None:
            return ""
        self.names.given, self.names.given_first = dict(outputs), True
        return _order_by(order, self.expressions, places)


def _grouped_columns(group: exp.Group | None) -> list[exp.Expr]:
    """What ROLLUP, CUBE and GROUPING SETS may leave out, in the order of grouping_id."""
    if group is None:
        return []
    words = ("rollup", "cube", "grouping_sets")
    sets = any(
        isinstance(item, exp.Rollup | exp.Cube | exp.GroupingSets) for item in group.expressions
    )
    if not sets and not any(group.args.get(word) for word in words):
        return []
    return list(dict.fromkeys(grouping_items(group.expressions)))


def grouping_items(items: Iterable[exp.Expr]) -> Iterator[exp.Expr]:
    """The items of GROUP BY, and those in its ROLLUP, CUBE and GROUPING SETS."""
    for item in items:
        match item:
            case exp.Rollup() | exp.Cube() | exp.GroupingSets() | exp.Tuple():
                yield from grouping_items(item.expressions)
            case exp.Paren():
                yield item.this
            case _:
                yield item


class _WithPlaces(Expressions):
    def compile(self, node: exp.Expr) -> TypedSql:
        return node.args["typed"] if isinstance(node, _At) else super().compile(node)


def _values(node: exp.Values, expressions: Expressions) -> ReadRelation:
    """Rows written out in FROM."""
    rows = [
        [expressions.compile(v) for v in (row.expressions if isinstance(row, exp.Tuple) else [row])]
        for row in node.expressions
    ]
    types = [cell.type for cell in rows[0]]
    for row in rows:
        if len(row) != len(types):
            raise BadQuery(
                f"all rows of VALUES must have {len(types)} values like the first, got {len(row)}"
            )
        types = [wider(a, b.type) or VOID for a, b in zip(types, row, strict=True)]
    columns = tuple(AnswerColumn(f"col{n + 1}", type) for n, type in enumerate(types))
    written = ", ".join(
        "(" + ", ".join(cast(c, t).sql for c, t in zip(row, types, strict=True)) + ")"
        for row in rows
    )
    names = ", ".join(quoted(column.name) for column in columns)
    return ReadRelation(f"SELECT * FROM (VALUES {written}) AS _values({names})", columns)


def _unique(relation: ReadRelation) -> ReadRelation:
    """Two outputs may not have the same name."""
    seen: set[str] = set()
    for column in relation.columns:
        if column.name.lower() in seen:
            raise BadQuery(
                f"two columns are called '{column.name}'", hint="give one another name with AS."
            )
        seen.add(column.name.lower())
    return relation
