"""A project file is a list of statements; each becomes one definition with its origin.

`CREATE STREAM`, `TABLE`, `VIEW`, `RULES`, `RULE`, `WATCH` and `SINK` are read token by token, so
that each mistake is named with its line. A SELECT is kept as written: `compile` reads its structure
and Spark its meaning. tests/define/test_statements.py and tests/plans/error_*.sql check what is
read and what is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from headrace.core.errors import BadDefinition, HeadraceError, Unsupported
from headrace.core.origin import Origin
from headrace.core.schema import Column, Schema, Type, not_in_csv
from headrace.core.subscription import Guarantee
from headrace.core.time import duration_us
from headrace.define.columns import read_column
from headrace.define.create_rule import read_rule
from headrace.define.create_watch import read_watch
from headrace.define.decision_rules import read_rules
from headrace.define.definitions import (
    Definition,
    PaceDefinition,
    QueryDefinition,
    SinkDefinition,
    StreamDefinition,
    TableDefinition,
    Watermark,
)
from headrace.define.pace import PACE_OPTIONS, read_pace
from headrace.define.queries import read_query
from headrace.define.tokens import TokenCursor, statements
from headrace.define.view_subscription import read_emission, read_where
from headrace.destination.kinds import parse_into

KNOWN = (
    "CREATE STREAM, CREATE TABLE, CREATE VIEW, CREATE RULES, CREATE RULE, CREATE WATCH, "
    "CREATE SINK and CREATE STREAM … AS SELECT"
)
_WATERMARK_OPTIONS = ("watermark.ahead", "watermark.idle")
_STREAM_OPTIONS = (
    "source", "format", "key", "id", "partitions", *_WATERMARK_OPTIONS, *PACE_OPTIONS,
)  # fmt: skip


def read_statements(text: str, path: str, folder: Path = Path()) -> list[Definition]:
    """All definitions of one file; decision tables are read from the project's folder.

    >>> text = "CREATE STREAM a (x INT); CREATE VIEW v AS SELECT count(*) FROM a"
    >>> [definition.name for definition in read_statements(text, "a.sql")]
    ['a', 'v']
    """
    found, mistakes = read_valid_statements(text, path, folder)
    if mistakes:
        raise mistakes[0]
    return found


def read_valid_statements(
    text: str, path: str, folder: Path = Path()
) -> tuple[list[Definition], list[HeadraceError]]:
    """The valid definitions of one file, and the errors of the others."""
    found: list[Definition] = []
    mistakes: list[HeadraceError] = []
    try:
        for tokens in statements(text, path):
            try:
                found.append(_Reader(text, path, tokens, folder=folder).definition())
            except HeadraceError as error:
                mistakes.append(error)
    except HeadraceError as error:
        mistakes.append(error)  # it cannot even be split into tokens
    return found, mistakes


@dataclass(slots=True)
class _Reader(TokenCursor):
    """Reads one definition."""

    folder: Path = Path()

    def definition(self) -> Definition:
        first = self.origin
        self.expect("CREATE")
        kind = self.word().upper()
        if kind not in {"STREAM", "TABLE", "VIEW", "SINK", "RULES", "RULE", "WATCH"}:
            raise Unsupported(
                f"CREATE {kind} is not supported",
                hint=f"available statements: {KNOWN}.",
                origin=first,
            )
        name = self.name(f"the {kind.lower()}")
        if name.startswith("_"):
            raise self.error(f"'{name}': names that begin with '_' are reserved", first)
        if kind == "VIEW" or (kind == "STREAM" and self.starts_with("AS")):
            return read_query(self, kind.lower(), name, first)
        if kind == "SINK":
            return self.sink(name, first)
        if kind == "RULES":
            return self.rules(name, first)
        if kind == "RULE":
            return read_rule(self, name, first)
        if kind == "WATCH":
            return read_watch(self, name, first)
        schema, watermark = self.columns(name)
        if kind == "TABLE":
            if watermark:
                raise self.error(f"table '{name}' cannot have a watermark; only streams can", first)
            self.refuse_clauses(name, schema, first)
            return self.table(name, schema, first)
        return self.stream(name, schema, watermark, first)

    # One kind of definition each

    def rules(self, name: str, origin: Origin) -> QueryDefinition:
        source, rules = read_rules(self, name, self.folder)
        if not rules.rules:
            raise self.error(f"rules '{name}' have no rule", origin)
        query = f"SELECT * FROM {source.text}"
        return QueryDefinition(name, "stream", query, origin, source.origin, rules=rules)

    def stream(
        self, name: str, schema: Schema, watermark: Watermark | None, origin: Origin
    ) -> StreamDefinition:
        options = self.options() if self.accept("WITH") else {}
        self.end()
        plain = {key: options.pop(key) for key in _STREAM_OPTIONS if key in options}
        times = {key: plain.pop(key) for key in _WATERMARK_OPTIONS if key in plain}
        said = {key: plain.pop(key) for key in PACE_OPTIONS if key in plain}
        count = plain.pop("partitions", None)
        if count is not None and (not count.isdigit() or not 1 <= int(count) <= 1024):
            raise self.error(f"partitions must be a number from 1 to 1024, not '{count}'", origin)
        if plain.get("format", "json") not in {"json", "csv"}:
            raise self.error(f"format must be 'json' or 'csv', not '{plain['format']}'", origin)
        if plain.get("format") == "csv":
            self.check_csv(schema, origin)
        self.check_watermark(schema, watermark, origin)
        if plain.get("key") and not schema.find(plain["key"]):
            raise self.error(f"the key '{plain['key']}' is not a declared column", origin)
        for role in ("key", "id"):
            self.refuse_generated(f"the {role}", schema.find(plain.get(role, "")), origin)
        return StreamDefinition(
            name,
            schema,
            origin,
            self.with_times(name, watermark, times, origin),
            partitions=int(count) if count else None,
            pace=self.pace(said, origin),
            options=options,
            **plain,
        )

    def pace(self, said: dict[str, str], origin: Origin) -> PaceDefinition:
        try:
            return read_pace(said)
        except ValueError as error:
            raise self.error(str(error), origin) from error

    def check_watermark(self, schema: Schema, watermark: Watermark | None, origin: Origin) -> None:
        column = schema.find(watermark.column) if watermark else None
        if watermark and column is None:
            unknown = f"the watermark column '{watermark.column}' is not a column of the stream"
            raise self.error(unknown, origin)
        self.refuse_generated("the watermark column", column, origin)
        if column and column.type != Type("TIMESTAMP"):
            raise self.error(
                f"the watermark column '{column.name}' is {column.type.spark}, not TIMESTAMP",
                origin,
            )

    def refuse_generated(self, role: str, column: Column | None, origin: Origin) -> None:
        """The columns that set an event's partition and lateness are read before anything is
        computed.
        """
        if column and column.generated:
            raise BadDefinition(
                f"{role} '{column.name}' must be read from the event, but it is GENERATED",
                hint="declare the field that it is computed from, with FROM or FORMAT if needed.",
                origin=origin,
            )

    def with_times(
        self, name: str, watermark: Watermark | None, times: dict[str, str], origin: Origin
    ) -> Watermark | None:
        """The watermark with its options."""
        if watermark is None:
            for option in times:
                raise self.error(f"'{option}' requires a WATERMARK; '{name}' has none", origin)
            return None
        try:
            lengths = {option: duration_us(text) for option, text in times.items()}
        except ValueError as error:
            raise self.error(f"an option of the watermark is not valid: {error}", origin) from error
        return replace(
            watermark,
            ahead_us=lengths.get("watermark.ahead", watermark.ahead_us),
            idle_us=lengths.get("watermark.idle", watermark.idle_us),
        )

    def refuse_clauses(self, name: str, schema: Schema, origin: Origin) -> None:
        """Refuse FORMAT, FROM and DEFAULT on a table, which Spark reads."""
        for column in schema.columns:
            if column.clauses:
                what = f"column '{column.name}' of table '{name}' cannot have {column.clauses}"
                raise self.error(f"{what}; only columns of streams can", origin)

    def check_csv(self, schema: Schema, origin: Origin) -> None:
        problem = next(filter(None, map(not_in_csv, schema.stored.columns)), None)
        if problem:
            raise Unsupported(problem, hint="use format = 'json'.", origin=origin)

    def table(self, name: str, schema: Schema, origin: Origin) -> TableDefinition:
        self.expect("USING")
        format = self.word().lower()
        if format not in {"csv", "parquet", "json"}:
            raise self.error(f"a table must be USING csv, parquet or json, not {format}", origin)
        options = self.options() if self.accept("OPTIONS") else {}
        self.expect("LOCATION")
        location = self.literal()
        self.end()
        return TableDefinition(name, schema, format, location, options, origin)

    def sink(self, name: str, origin: Origin) -> SinkDefinition:
        self.expect("FROM")
        view = self.name("the view")
        where, condition = read_where(self)
        self.expect("INTO")
        destination = parse_into(self)
        emission = read_emission(self, view, where)
        subscription = msgspec.structs.replace(emission, condition=condition)
        options = self.options() if self.accept("WITH") else {}
        self.end()
        said = options.pop("guarantee", Guarantee.EXACTLY_ONCE.value).lower()
        if options:
            other = next(iter(options))
            raise self.error(
                f"unknown option '{other}'; a sink only has the option guarantee", origin
            )
        if said not in set(Guarantee):
            known = ", ".join(f"'{each}'" for each in Guarantee)
            raise self.error(f"guarantee must be one of {known}, not '{said}'", origin)
        return SinkDefinition(name, subscription, destination, Guarantee(said), origin)

    # Clauses

    def columns(self, name: str) -> tuple[Schema, Watermark | None]:
        origin = self.origin
        self.expect("(")
        columns: list[Column] = []
        watermark = None
        while True:
            if self.starts_with("WATERMARK"):
                if watermark:
                    raise self.error(f"stream '{name}' declares WATERMARK twice")
                watermark = self.watermark()
            else:
                columns.append(read_column(self))
            if not self.accept(","):
                break
        self.expect(")")
        if not any(column.generated is None for column in columns):
            raise self.error(
                f"'{name}' must declare at least one column that is not GENERATED", origin
            )
        try:
            return Schema(tuple(columns)), watermark
        except BadDefinition as error:
            raise self.error(error.message, origin) from error

    def watermark(self) -> Watermark:
        self.expect("WATERMARK")
        column = self.name("the watermark column")
        self.expect("DELAY")
        self.expect("OF")
        self.expect("INTERVAL")
        place, words = self.origin, []
        while not (self.done or self.starts_with(",") or self.starts_with(")")):
            words.append(self.word())
        try:
            return Watermark(column, duration_us(" ".join(words)))
        except ValueError as error:
            raise self.error(f"the watermark's delay is not valid: {error}", place) from error

    def options(self) -> dict[str, str]:
        self.expect("(")
        found: dict[str, str] = {}
        while not self.starts_with(")"):
            key = self.word()
            while self.accept("."):
                key += "." + self.word()
            self.accept("=")
            sign = "-" if self.accept("-") else ""
            if key.lower() in found:
                raise self.error(f"the option '{key}' is given twice")
            found[key.lower()] = sign + self.word()
            if not self.accept(","):
                break
        self.expect(")")
        return found
