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

from headrace.certified.relation import AnswerColumn, ReadRelation
from headrace.certified.select import compile_query
from headrace.compile.analyser import Analyser
from headrace.compile.calls import known_to_spark, read_call
from headrace.compile.carry import Carried, is_carried
from headrace.compile.computed import analyse_stream, check_computed
from headrace.compile.decide import decided
from headrace.compile.derive import (
    all_tables,
    base_stream,
    base_streams,
    check_raw,
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
from headrace.compile.finish import answer_columns, typed_outputs
from headrace.compile.folds import Folds
from headrace.compile.join import StreamJoin, join_plan
from headrace.compile.lateness import LatenessParts, lateness_of
from headrace.compile.lower import (
    lower_finish,
    lower_map,
    lower_output,
    lower_partials,
    select_of,
)
from headrace.compile.plan import (
    WINDOW,
    ColumnPlan,
    DerivedPlan,
    JoinPlan,
    KeyPlan,
    OutputPlan,
    Plan,
    StreamPlan,
    TablePlan,
    ViewPlan,
    digest,
)
from headrace.compile.raised import dated, raised_rows
from headrace.compile.resolve import Resolved, resolve, resolve_one
from headrace.compile.rules import in_words_of_rules, ledger_view, rule_plans
from headrace.compile.sinks import refuse_circles, sink_plans
from headrace.compile.split import Split, split
from headrace.compile.stored import reads_raw
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
from headrace.core.event import CUT, HIDDEN, OFFSET, PARTITION
from headrace.core.mistakes import Mistakes
from headrace.core.rule import ALERTS, matches_of, stream_of, view_of, watched_of
from headrace.core.schema import Schema
from headrace.define.definitions import QueryDefinition, StreamDefinition
from headrace.define.dialect import sql_of
from headrace.define.processors import NO_PROCESSORS, ProcessorDefinition
from headrace.define.project import Project


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
    for stream in project.streams.values():
        check_computed(stream)
    ordered = resolve(project)
    schemas = {stream.name: stream.schema for stream in project.streams.values()}
    schemas |= {table.name: table.schema for table in project.tables.values()}
    mistakes, wrong = Mistakes(), set[str]()
    names_raw = any(resolved.names_raw for resolved in ordered.values())
    for stream in project.streams.values():
        before = len(mistakes.found)
        with mistakes.noted():
            raw = reads_raw(stream.schema, named=names_raw)
            analyse_stream(stream, analyser, raw=raw and stream.format == "json")
        wrong |= {stream.name} if len(mistakes.found) > before else set()
    for table in project.tables.values():
        analyser.relation(table.name, table.schema.spark_ddl)
    with in_words_of_rules():
        compiler = _Compiler(project, analyser, ordered, schemas, processors)
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
        self.shapes = shapes_of(project)
        self.joins: dict[str, StreamJoin] = {
            name: stream_join(resolved, ordered, project, schemas)
            for name, resolved in ordered.items()
            if resolved.joined
        }

    def plan(self) -> Plan:
        raw = {name for resolved in self.ordered.values() for name in resolved.raw}
        streams = tuple(
            stream_plan(s, self.project, raw=s.name in raw) for s in self.project.streams.values()
        )
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
        rules = rule_plans(self.project, plan)
        plan = msgspec.structs.replace(plan, rules=tuple(rules))
        shapes = [shape_plan(plan, key, made) for key, made in self.shapes.items()]
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
            self.add_raised(name, view_of(rule.name), {})
        if self.project.rules or self.project.watches:
            self.views[ALERTS] = ledger_view()

    def add_watches(self) -> None:
        """The matches of each shape as a view."""
        for key in self.shapes:
            self.add_raised(matches_of(key), watched_of(key), MATCHED)

    def add_raised(self, stream: str, view: str, also: Mapping[str, str]) -> None:
        """A view of the stream's rows as alerts."""
        said = self.ordered[stream].definition
        columns = self.analyser.analyse(f"SELECT * FROM {stream}", said.query_origin)
        self.ordered[stream], time = dated(self.ordered[stream], self.ordered, self.project)
        select = raised_rows(stream, columns, time, said.query_origin, also)
        kept = QueryDefinition(view, "view", sql_of(select), said.origin, said.query_origin)
        self.add_mergeable(Resolved(kept, select, stream, stream, (), ()))

    def add(self, resolved: Resolved) -> None:
        if resolved.definition.rules:
            time = event_time(resolved.stream or "", self.ordered, self.project)
            resolved = decided(resolved, time, self.analyser.analyse)
            self.ordered[resolved.definition.name] = resolved
        definition = resolved.definition
        check_raw(resolved, self.ordered, self.project)
        _check_words(resolved)
        if is_carried(resolved):
            self.add_carried(resolved)
            return
        text = for_spark(definition.query, resolved.over_views or resolved.select)
        text = known_to_spark(text, definition.query_origin)
        if definition.name.startswith(matches_of("")):
            # A watch asks for the place of events, which no text of a derived stream says.
            text = sql_of(self.folds.written(resolved, self.folds.below(resolved, definition.name)))
        self.analyser.analyse(text, definition.query_origin, definition.name)
        if definition.kind == "stream":
            self.add_derived(resolved)
        elif resolved.views:
            self.add_read(resolved)
        else:
            self.add_mergeable(resolved)

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

    def add_mergeable(self, resolved: Resolved) -> None:
        origin = resolved.definition.query_origin
        names = column_names(resolved, self.ordered, self.schemas) | set(HIDDEN)
        carried = self.folds.below(resolved, resolved.definition.name)
        source = self.folds.written(resolved, carried)

        def equal(one: str, other: str) -> bool:
            return self.analyser.equal(select_of(source, [f"{one} AS one", f"{other} AS other"]))

        parts = split(resolved.select, names, origin, equal)
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
        partials, calls = lower_partials(parts, mapped)
        outputs = tuple(lower_output(name, item, parts, mapped) for name, item in parts.items)
        _refuse_repeats(outputs, mapped.keys, resolved)
        join = self.join_plan(joining) if joining else None
        plan = ViewPlan(
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
            calls=tuple(calls),
            having=lower_finish(parts.having) if parts.having else None,
            order=tuple(lower_finish(item) for item in parts.order),
            limit=parts.limit,
            inputs=self.inputs(resolved),
            join=join,
            # The rows of an outer join depend on watermarks, which only this form speaks of.
            definition=sql_of(rows if join and join.withdrawn else inlined(resolved, self.ordered)),
        )
        self.views[resolved.definition.name] = typed_outputs(plan, origin)

    def join_plan(self, joining: Resolved) -> JoinPlan:
        join = self.joins[joining.definition.name]
        select = inlined(joining, self.ordered, self.joins)
        return join_plan(select, join)

    def add_read(self, resolved: Resolved) -> None:
        origin = resolved.definition.query_origin
        relations = {name.lower(): answer_columns(self.views[name]) for name in resolved.views}
        for name in resolved.tables:
            columns = self.project.tables[name].schema.columns
            relations[name.lower()] = tuple(AnswerColumn(c.name, c.type.spark) for c in columns)
        whole = resolved.over_views or resolved.select
        made = compile_query(
            whole,
            lambda name: ReadRelation(name, relations[name]) if name in relations else None,
            origin=origin,
        )
        outputs = tuple(
            OutputPlan(column.name, column.type, "", estimate=column.estimate, read_key=column.key)
            for column in made.columns
        )
        self.views[resolved.definition.name] = ViewPlan(
            resolved.definition.name,
            "read",
            str(resolved.definition.origin),
            outputs,
            reads=resolved.views,
            tables=resolved.tables,
            read_sql=sql_of(whole),
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
        # What a computed column is computed from is in the view's SQL, where it is named.
        streams = [_declared(self.project.streams[name].schema.stored) for name in bases]
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


def _declared(schema: Schema) -> str:
    """What a schema says of the values of its columns."""
    clauses = [f"{column.name} {said}" for column in schema.columns if (said := column.clauses)]
    return "; ".join([schema.spark_ddl, *clauses])


def stream_plan(definition: StreamDefinition, project: Project, *, raw: bool = False) -> StreamPlan:
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
        raw=raw,
        **times,
    )


def _refuse_repeats(
    outputs: tuple[OutputPlan, ...], keys: tuple[KeyPlan, ...], resolved: Resolved
) -> None:
    seen: set[str] = set()
    windows = {key.column for key in keys if key.type == WINDOW}
    for output in outputs:
        # Tables of an answer have two columns for a window.
        edges = {f"{output.name}_start", f"{output.name}_end"} if output.key in windows else set()
        names = {name.lower() for name in {output.name, *edges}}
        if names & seen:
            raise Unsupported(
                f"view '{resolved.definition.name}' has two columns named '{output.name}'",
                hint="give one of them another name with AS.",
                origin=resolved.definition.query_origin,
            )
        seen |= names
