"""The compiler: a project and Spark's analyser in, a plan out. Nothing is changed by it.

definitions -> resolved (names) -> split (structure) -> lowered (types, partials) -> plan. Rules are
written out as a SELECT before they are split.
tests/plans holds projects beside the plans and the sentences they must give.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec
from sqlglot import exp

from headrace.compile.analyser import Analyser
from headrace.compile.calls import known_to_spark, read_call
from headrace.compile.carry import Carried, is_carried
from headrace.compile.decide import decided
from headrace.compile.derive import (
    all_tables,
    base_stream,
    base_streams,
    check_stateless,
    column_names,
    event_time,
    flow_of,
    inlined,
    join_below,
    passes_on,
    row_place,
    stream_join,
    streams_below,
)
from headrace.compile.folds import Folds
from headrace.compile.join import StreamJoin, join_plan
from headrace.compile.lateness import LatenessParts, lateness_of
from headrace.compile.lower import (
    lower_finish,
    lower_map,
    lower_output,
    lower_partials,
    type_of,
)
from headrace.compile.plan import (
    WINDOW,
    ColumnPlan,
    DerivedPlan,
    JoinPlan,
    OutputPlan,
    Plan,
    StreamPlan,
    TablePlan,
    ViewPlan,
    digest,
)
from headrace.compile.raised import dated, nested_columns, raised_rows
from headrace.compile.resolve import HIDDEN, Resolved, resolve, resolve_one
from headrace.compile.rules import in_words_of_rules, ledger_view, rule_plans
from headrace.compile.sinks import refuse_circles, sink_plans
from headrace.compile.split import Split, split
from headrace.compile.translate import translate
from headrace.compile.watches import (
    MATCHED,
    expanded,
    in_words_of_watches,
    shape_plan,
    shaped,
    shapes_of,
    watch_plan,
)
from headrace.compile.window_words import check_windows, for_spark
from headrace.core.errors import Unsupported
from headrace.core.event import CUT, OFFSET, PARTITION
from headrace.core.mistakes import Mistakes
from headrace.core.origin import Origin
from headrace.core.rule import ALERTS, matches_of, stream_of, view_of, watched_of
from headrace.core.schema import Schema
from headrace.define.definitions import QueryDefinition, StreamDefinition
from headrace.define.dialect import parse_translatable, sql_of
from headrace.define.processors import NO_PROCESSORS, ProcessorDefinition
from headrace.define.project import Project

HIDDEN_DDL = (
    "`_partition` INT, `_offset` BIGINT, `_arrived_at` TIMESTAMP, `_late` BOOLEAN, "
    "`_lateness` BIGINT"
)
# What may stand after the aggregates: forms that mean the same in Spark and in the store.
_FINISH_NODES = (
    exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Boolean, exp.Paren, exp.Neg, exp.Add,
    exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE,
    exp.LT, exp.LTE, exp.Is, exp.In, exp.Between, exp.Case, exp.If, exp.Coalesce, exp.Nullif,
    exp.Round, exp.Abs, exp.Concat, exp.DPipe, exp.Ordered, exp.Cast, exp.DataType,
    exp.Upper, exp.Lower,
)  # fmt: skip


def compile_project(
    project: Project,
    analyser: Analyser,
    processors: Mapping[str, ProcessorDefinition] = NO_PROCESSORS,
) -> Plan:
    """Decide everything about a project."""
    said, project = project, expanded(project)
    with in_words_of_watches(said):
        return _compiled(project, analyser, processors, said)


def _compiled(
    project: Project,
    analyser: Analyser,
    processors: Mapping[str, ProcessorDefinition],
    said: Project,
) -> Plan:
    ordered = resolve(project)
    schemas = {stream.name: stream.schema for stream in project.streams.values()}
    schemas |= {table.name: table.schema for table in project.tables.values()}
    for stream in project.streams.values():
        analyser.relation(stream.name, f"{stream.schema.spark_ddl}, {HIDDEN_DDL}")
    for table in project.tables.values():
        analyser.relation(table.name, table.schema.spark_ddl)
    with in_words_of_rules():
        compiler = _Compiler(project, analyser, ordered, schemas, processors)
        mistakes, wrong = Mistakes(), set[str]()
        for name, resolved in list(ordered.items()):
            if wrong.intersection((*resolved.streams, *resolved.views)):
                wrong.add(name)  # what is wrong with it cannot be told
                continue
            before = len(mistakes.found)
            with mistakes.noted(), in_words_of_watches(said), in_words_of_rules():
                compiler.add(resolved)
            wrong |= {name} if len(mistakes.found) > before else set()
        mistakes.end()
        compiler.add_rules()
        compiler.add_watches()
        return compiler.plan()


def check_query(project: Project, query: QueryDefinition) -> None:
    """Refuse what is wrong with one query and can be told without Spark."""
    resolved = resolve_one(project, query)
    _check_words(resolved)
    if query.kind == "view" and not resolved.views:
        for item in resolved.select.expressions:
            for node in item.walk():
                read_call(node, query.query_origin)


def _check_words(resolved: Resolved) -> None:
    if resolved.definition.kind == "stream":
        check_stateless(resolved)
    elif not resolved.views:
        check_windows(resolved.select, resolved.definition.query_origin)


class _Compiler:
    def __init__(
        self,
        project: Project,
        analyser: Analyser,
        ordered: dict[str, Resolved],
        schemas: dict[str, Schema],
        processors: Mapping[str, ProcessorDefinition],
    ) -> None:
        self.project, self.analyser = project, analyser
        self.ordered, self.schemas = ordered, schemas
        self.folds = Folds(project, analyser, ordered, processors)
        self.views: dict[str, ViewPlan] = {}
        self.derived: list[DerivedPlan] = []
        self.nested: dict[str, tuple[str, ...]] = {}
        self.shapes = shapes_of(project)
        self.joins: dict[str, StreamJoin] = {
            name: stream_join(resolved, ordered, project, schemas)
            for name, resolved in ordered.items()
            if resolved.joined
        }

    def plan(self) -> Plan:
        streams = tuple(stream_plan(s, self.project) for s in self.project.streams.values())
        tables = tuple(
            TablePlan(
                t.name, t.schema.spark_ddl, t.format, t.location, tuple(sorted(t.options.items()))
            )
            for t in self.project.tables.values()
        )
        plan = Plan(
            self.project.settings.name,
            streams,
            tables,
            tuple(self.derived),
            tuple(self.views.values()),
        )
        plan = msgspec.structs.replace(plan, sinks=sink_plans(self.project, plan))
        rules = rule_plans(self.project, plan, self.nested)
        plan = msgspec.structs.replace(plan, rules=tuple(rules))
        shapes = [
            shape_plan(plan, key, made, self.nested[matches_of(key)])
            for key, made in self.shapes.items()
        ]
        plan = msgspec.structs.replace(plan, shapes=tuple(shapes))
        watches = [watch_plan(self.project, plan, shaped(w)) for w in self.project.watches.values()]
        plan = msgspec.structs.replace(plan, watches=tuple(watches))
        refuse_circles(plan)
        return plan

    def add_rules(self) -> None:
        """Each rule's alerts as a view, and the ledger of all."""
        for rule in self.project.rules.values():
            name = stream_of(rule.name)
            if name not in self.ordered:
                continue  # it reads views, so its SELECT is the view
            self.nested[rule.name] = self.add_raised(name, view_of(rule.name), {})
        if self.project.rules or self.project.watches:
            self.views[ALERTS] = ledger_view()

    def add_watches(self) -> None:
        """The matches of each shape as a view."""
        for key in self.shapes:
            name = matches_of(key)
            self.nested[name] = self.add_raised(name, watched_of(key), MATCHED)

    def add_raised(self, stream: str, view: str, also: Mapping[str, str]) -> tuple[str, ...]:
        """A view of the stream's rows as alerts; the columns that are kept as JSON."""
        said = self.ordered[stream].definition
        columns = self.analyser.analyse(f"SELECT * FROM {stream}", said.query_origin)
        self.ordered[stream], time = dated(self.ordered[stream], self.ordered, self.project)
        select, types = raised_rows(stream, columns, time, said.query_origin, also)
        kept = QueryDefinition(view, "view", sql_of(select), said.origin, said.query_origin)
        self.add_mergeable(Resolved(kept, select, stream, stream, (), ()), types)
        return nested_columns(columns)

    def add(self, resolved: Resolved) -> None:
        if resolved.definition.rules:
            time = event_time(resolved.stream or "", self.ordered, self.project)
            resolved = decided(resolved, time, self.analyser.analyse)
            self.ordered[resolved.definition.name] = resolved
        definition = resolved.definition
        _check_words(resolved)
        if is_carried(resolved):
            self.add_carried(resolved)
            return
        text = for_spark(definition.query, resolved.select)
        text = known_to_spark(text, definition.query_origin)
        if definition.name.startswith(matches_of("")):
            # A watch asks for the place of events, which no text of a derived stream says.
            text = sql_of(self.folds.written(resolved, self.folds.below(resolved, definition.name)))
        types = self.analyser.analyse(text, definition.query_origin, definition.name)
        if definition.kind == "stream":
            self.add_derived(resolved)
        elif resolved.views:
            self.add_read(resolved, types)
        else:
            self.add_mergeable(resolved, types)

    def add_derived(self, resolved: Resolved) -> None:
        name = resolved.definition.name
        carried = self.folds.below(resolved, name)
        sql = sql_of(self.folds.written(resolved, carried))
        self.derived.append(self.derived_plan(resolved, sql, carried))

    def add_carried(self, resolved: Resolved) -> None:
        name, origin = resolved.definition.name, resolved.definition.query_origin
        carried = self.folds.stream(resolved, name)
        sql = sql_of(carried.select)
        self.analyser.analyse(sql, origin, name)
        self.derived.append(self.derived_plan(resolved, sql, carried))

    def derived_plan(self, resolved: Resolved, sql: str, carried: Carried | None) -> DerivedPlan:
        stream, tables = flow_of(resolved, self.ordered), all_tables(resolved, self.ordered)
        carry = carried.plan if carried else None
        return DerivedPlan(resolved.definition.name, stream, tables, sql, carry)

    def add_mergeable(self, resolved: Resolved, types: list[tuple[str, str]]) -> None:
        origin = resolved.definition.query_origin
        names = column_names(resolved, self.ordered, self.schemas) | set(HIDDEN)
        parts = split(resolved.select, names, origin)
        carried = self.folds.below(resolved, resolved.definition.name)
        source = self.folds.written(resolved, carried)
        joining = join_below(resolved, self.ordered, self.joins)
        rows = inlined(resolved, self.ordered, self.joins) if joining else source
        place = f"{row_place(resolved, OFFSET)} * 65536 + {row_place(resolved, PARTITION)}"
        late = self.lateness(resolved, parts)
        if any(group.ordered for group in parts.groups):
            self.folds.refuse_joined(resolved)
        mapped = lower_map(
            parts,
            source,
            rows,
            place,
            self.event_time(resolved),
            self.analyser.analyse,
            origin,
            cut=f"{resolved.stream_alias}.{CUT}" if carried else None,
            fold=self.folds.numbered(resolved),
            also=late.items,
        )
        partials, finishes = lower_partials(parts, mapped)
        self.check_finish(
            resolved, [*(e for _, e in parts.items), parts.having, *parts.order], origin
        )

        def finish(expression: exp.Expr) -> str:
            return lower_finish(expression, finishes, mapped.keys)

        outputs = tuple(
            lower_output(name, expression, spark_type, parts, mapped, finish(expression))
            for (name, expression), (_, spark_type) in zip(parts.items, types, strict=True)
        )
        _refuse_repeats(outputs, resolved)
        join = self.join_plan(joining) if joining else None
        self.views[resolved.definition.name] = ViewPlan(
            resolved.definition.name,
            "carried" if carried or mapped.carry else "mergeable",
            str(resolved.definition.origin),
            outputs,
            stream=flow_of(resolved, self.ordered),
            tables=all_tables(resolved, self.ordered),
            carry=carried.plan if carried else mapped.carry,
            map_sql=mapped.sql,
            keys=mapped.keys,
            partials=(*partials, *late.partials),
            having=finish(parts.having) if parts.having else None,
            order=tuple(finish(item) for item in parts.order),
            limit=parts.limit,
            inputs=self.inputs(resolved),
            join=join,
            # The rows of an outer join depend on watermarks, which only this form speaks of.
            definition=sql_of(rows if join and join.withdrawn else inlined(resolved, self.ordered)),
        )

    def join_plan(self, joining: Resolved) -> JoinPlan:
        join = self.joins[joining.definition.name]
        select = inlined(joining, self.ordered, self.joins)
        return join_plan(select, join)

    def add_read(self, resolved: Resolved, types: list[tuple[str, str]]) -> None:
        origin = resolved.definition.query_origin
        relations = {name: self.views[name].outputs for name in resolved.views}
        select = parse_translatable(sql_of(resolved.select), origin)
        translated = translate(select, relations, origin)
        outputs = tuple(
            OutputPlan(
                result.name,
                result.type or (getattr(type_of(spark_type), "name", None) or "STRING"),
                "",
                estimate=result.estimate,
                read_key=result.key,
            )
            for result, (_, spark_type) in zip(translated.results, types, strict=True)
        )
        _refuse_repeats(outputs, resolved)
        self.views[resolved.definition.name] = ViewPlan(
            resolved.definition.name,
            "read",
            str(resolved.definition.origin),
            outputs,
            reads=resolved.views,
            read_sql=translated.tree.sql(dialect="sqlite", comments=False),
        )

    def lateness(self, resolved: Resolved, parts: Split) -> LatenessParts:
        """What the view keeps about late events; a joined row is of two events, so nothing."""
        if len(base_streams(resolved, self.ordered)) > 1:
            return LatenessParts()
        stream = self.project.streams[base_stream(resolved, self.ordered)]
        return lateness_of(parts, stream, resolved.stream_alias)

    def event_time(self, resolved: Resolved) -> str | None:
        """SQL for the event time, which orders events before their place does; 0 where the stream
        has no watermark, None where a derived stream does not pass it on."""
        mark = self.project.streams[base_stream(resolved, self.ordered)].watermark
        if mark is None:
            return "0L"
        passed = passes_on(resolved, self.ordered, mark.column)
        return f"unix_micros({resolved.stream_alias}.{mark.column})" if passed else None

    def inputs(self, resolved: Resolved) -> str:
        """Fingerprint of what the view's SQL does not say itself."""
        bases = dict.fromkeys(base_streams(resolved, self.ordered))
        streams = [_declared(self.project.streams[name].schema) for name in bases]
        tables = [self.project.tables[name] for name in all_tables(resolved, self.ordered)]
        functions = self.project.functions_file
        code = functions.read_bytes() if functions else b""
        # Also a function that only a derived stream calls decides on the view.
        whole = inlined(resolved, self.ordered)
        called = any(isinstance(node, exp.Anonymous) for node in whole.walk()) or any(
            below.definition.makes_rows for below in streams_below(resolved, self.ordered)
        )
        return digest(
            [
                ", ".join(streams),
                [
                    [t.schema.spark_ddl, t.format, t.location, sorted(t.options.items())]
                    for t in tables
                ],
                hashlib.sha256(code).hexdigest() if called else "",
            ]
        )

    def check_finish(
        self, resolved: Resolved, expressions: list[exp.Expr | None], origin: Origin
    ) -> None:
        for expression in expressions:
            for node in expression.walk() if expression else ():
                if not isinstance(node, _FINISH_NODES):
                    what = node.name.lower() if isinstance(node, exp.Anonymous) else node.key
                    raise Unsupported(
                        f"view '{resolved.definition.name}' uses '{what}' on an aggregated value",
                        hint="after aggregation there are arithmetic, comparisons, CASE, coalesce, "
                        "nullif, round, abs, concat and casts; apply others to the events, before.",
                        origin=origin,
                    )


def _declared(schema: Schema) -> str:
    """What a schema says of the values of its columns."""
    clauses = [f"{column.name} {said}" for column in schema.columns if (said := column.clauses)]
    return "; ".join([schema.spark_ddl, *clauses])


def stream_plan(definition: StreamDefinition, project: Project) -> StreamPlan:
    """A source stream as its readers need it."""
    mark = definition.watermark
    times = {"ahead_us": mark.ahead_us, "idle_us": mark.idle_us} if mark else {}
    return StreamPlan(
        definition.name,
        tuple(map(ColumnPlan.of, definition.schema.columns)),
        definition.format,
        definition.partitions or project.settings.log.partitions,
        (mark.column, mark.delay_us) if mark else None,
        definition.key,
        definition.id,
        pace=definition.pace,
        **times,
    )


def _refuse_repeats(outputs: tuple[OutputPlan, ...], resolved: Resolved) -> None:
    seen: set[str] = set()
    for output in outputs:
        edges = {f"{output.name}_start", f"{output.name}_end"} if output.type == WINDOW else set()
        names = {name.lower() for name in {output.name, *edges}}
        if names & seen:
            raise Unsupported(
                f"view '{resolved.definition.name}' has two columns named '{output.name}'",
                hint="give one of them another name with AS.",
                origin=resolved.definition.query_origin,
            )
        seen |= names
