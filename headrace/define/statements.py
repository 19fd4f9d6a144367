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

from headrace.core.errors import BadDefinition, Unsupported
from headrace.core.origin import Origin
from headrace.core.schema import Column, Schema, Type
from headrace.core.subscription import Guarantee
from headrace.core.time import duration_us
from headrace.define.deciding import read_rules
from headrace.define.definitions import (
    MATCHED,
    Definition,
    Pace,
    ProcessorCall,
    QueryDefinition,
    SinkDefinition,
    StreamDefinition,
    TableDefinition,
    Watermark,
)
from headrace.define.matching import read_match
from headrace.define.pace import PACE_OPTIONS, read_pace
from headrace.define.ruling import read_rule
from headrace.define.subscribing import read_emission, read_where
from headrace.define.thresholds import read_threshold
from headrace.define.tokens import Tokens, statements
from headrace.define.watching import read_watch

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
    return [
        _Reader(text, path, tokens, folder=folder).definition() for tokens in statements(text, path)
    ]


@dataclass(slots=True)
class _Reader(Tokens):
    """Reads one definition."""

    folder: Path = Path()

    def definition(self) -> Definition:
        first = self.origin
        self.expect("CREATE")
        kind = self.word().upper()
        if kind not in {"STREAM", "TABLE", "VIEW", "SINK", "RULES", "RULE", "WATCH"}:
            raise Unsupported(
                f"CREATE {kind} is not known", hint=f"known are {KNOWN}.", origin=first
            )
        name = self.name(f"the {kind.lower()}")
        if name.startswith("_"):
            raise self.wrong("names that begin with '_' are kept for Headrace itself", first)
        if kind == "VIEW" or (kind == "STREAM" and self.seen("AS")):
            return self.query(kind.lower(), name, first)
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
                raise self.wrong(f"table '{name}' has a watermark, which only streams have", first)
            return self.table(name, schema, first)
        return self.stream(name, schema, watermark, first)

    # One kind of definition each

    def query(self, kind: str, name: str, origin: Origin) -> QueryDefinition:
        self.expect("AS")
        if self.done:
            raise self.wrong(f"{kind} '{name}' has no SELECT after AS")
        place, start = self.origin, self.tokens[self.at].start
        if kind == "stream" and self.calls_processor():
            return self.processed(name, origin, place)
        if kind == "stream" and self.seen("COUNT"):
            return self.counted(name, origin, place)
        words = [token.text.upper() for token in self.tokens]
        if "MATCH_RECOGNIZE" in words:
            return self.matched(kind, name, origin, words.index("MATCH_RECOGNIZE"))
        text = self.text[start : self.tokens[-1].end + 1]
        return QueryDefinition(name, kind, text, origin, place)

    def calls_processor(self) -> bool:
        words = [token.text.upper() for token in self.tokens[self.at : self.at + 6]]
        return words[:3] == ["SELECT", "*", "FROM"] and words[4:] == ["(", "TABLE"]

    def processed(self, name: str, origin: Origin, place: Origin) -> QueryDefinition:
        """SELECT * FROM processor(TABLE(stream) PARTITION BY key, …)"""
        self.at += 3
        processor = self.name("the processor")
        for word in ("(", "TABLE", "("):
            self.expect(word)
        source = self.name("the stream")
        self.expect(")")
        self.expect("PARTITION BY")
        together = self.took("(")
        keys = [self.name("a column")]
        while self.took(","):
            keys.append(self.name("a column"))
        if together:
            self.expect(")")
        self.expect(")")
        self.end()
        call = ProcessorCall(processor, tuple(keys))
        return QueryDefinition(name, "stream", f"SELECT * FROM {source}", origin, place, call)

    def matched(self, kind: str, name: str, origin: Origin, at: int) -> QueryDefinition:
        """SELECT … FROM stream MATCH_RECOGNIZE ( … ) …"""
        place, start = self.origin, self.tokens[self.at].start
        source = self.tokens[at - 1]
        if self.tokens[at - 2].text.upper() != "FROM" or not source.text.isidentifier():
            raise self.wrong("MATCH_RECOGNIZE stands after FROM and the name of a stream", place)
        if kind == "view":
            raise Unsupported(
                f"view '{name}' has a pattern of its own",
                hint="make a stream of its matches with CREATE STREAM … AS SELECT … FROM "
                f"{source.text} MATCH_RECOGNIZE (…), and read that in the view.",
                origin=place,
            )
        self.at = at + 1
        match = read_match(self)
        end = self.tokens[self.at - 1].end + 1
        # The lines of the clause stay, so that a mistake after it is told at its own.
        lines = "\n" * self.text[source.start : end].count("\n")
        after = self.text[end : self.tokens[-1].end + 1]
        select = f"{self.text[start : source.start]}{MATCHED}{lines} {after}"
        match = replace(match, select=select)
        query = f"SELECT * FROM {source.text}"
        return QueryDefinition(name, "stream", query, origin, place, match=match)

    def counted(self, name: str, origin: Origin, place: Origin) -> QueryDefinition:
        """count(…) >= n WITHIN INTERVAL … PER keys FROM stream WHERE …"""
        threshold = read_threshold(self)
        rest = self.text[self.tokens[self.at].start : self.tokens[-1].end + 1]
        query = f"SELECT * {rest}"
        return QueryDefinition(name, "stream", query, origin, place, threshold=threshold)

    def rules(self, name: str, origin: Origin) -> QueryDefinition:
        source, rules = read_rules(self, name, self.folder)
        if not rules.rules:
            raise self.wrong(f"rules '{name}' have no rule", origin)
        query = f"SELECT * FROM {source.text}"
        return QueryDefinition(name, "stream", query, origin, source.origin, rules=rules)

    def stream(
        self, name: str, schema: Schema, watermark: Watermark | None, origin: Origin
    ) -> StreamDefinition:
        options = self.options() if self.took("WITH") else {}
        self.end()
        plain = {key: options.pop(key) for key in _STREAM_OPTIONS if key in options}
        times = {key: plain.pop(key) for key in _WATERMARK_OPTIONS if key in plain}
        said = {key: plain.pop(key) for key in PACE_OPTIONS if key in plain}
        count = plain.pop("partitions", None)
        if count is not None and (not count.isdigit() or not 1 <= int(count) <= 1024):
            raise self.wrong(f"partitions must be a number from 1 to 1024, not '{count}'", origin)
        if plain.get("format", "json") not in {"json", "csv"}:
            raise self.wrong(f"format is 'json' or 'csv', not '{plain['format']}'", origin)
        self.check_watermark(schema, watermark, origin)
        if plain.get("key") and not schema.find(plain["key"]):
            raise self.wrong(f"the key '{plain['key']}' is not a declared column", origin)
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

    def pace(self, said: dict[str, str], origin: Origin) -> Pace:
        try:
            return read_pace(said)
        except ValueError as error:
            raise self.wrong(str(error), origin) from error

    def check_watermark(self, schema: Schema, watermark: Watermark | None, origin: Origin) -> None:
        column = schema.find(watermark.column) if watermark else None
        if watermark and column is None:
            raise self.wrong(f"the watermark column '{watermark.column}' is not declared", origin)
        if column and column.type != Type("TIMESTAMP"):
            raise self.wrong(
                f"the watermark column '{column.name}' is {column.type.spark}, not TIMESTAMP",
                origin,
            )

    def with_times(
        self, name: str, watermark: Watermark | None, times: dict[str, str], origin: Origin
    ) -> Watermark | None:
        """The watermark with what the options say of it."""
        if watermark is None:
            for option in times:
                raise self.wrong(f"'{option}' is given, but '{name}' has no WATERMARK", origin)
            return None
        try:
            lengths = {option: duration_us(text) for option, text in times.items()}
        except ValueError as error:
            raise self.wrong(f"an option of the watermark is wrong: {error}", origin) from error
        return replace(
            watermark,
            ahead_us=lengths.get("watermark.ahead", watermark.ahead_us),
            idle_us=lengths.get("watermark.idle", watermark.idle_us),
        )

    def table(self, name: str, schema: Schema, origin: Origin) -> TableDefinition:
        self.expect("USING")
        format = self.word().lower()
        if format not in {"csv", "parquet", "json"}:
            raise self.wrong(f"a table is USING csv, parquet or json, not {format}", origin)
        options = self.options() if self.took("OPTIONS") else {}
        self.expect("LOCATION")
        location = self.literal()
        self.end()
        return TableDefinition(name, schema, format, location, options, origin)

    def sink(self, name: str, origin: Origin) -> SinkDefinition:
        self.expect("FROM")
        view = self.name("the view")
        where, condition = read_where(self)
        self.expect("INTO")
        into = self.word().lower()
        if into not in {"file", "stream"}:
            raise self.wrong(f"a sink goes INTO FILE or INTO STREAM, not {into}", origin)
        target = self.literal() if into == "file" else self.name("the stream")
        emission = read_emission(self, view, where)
        subscription = msgspec.structs.replace(emission, condition=condition)
        options = self.options() if self.took("WITH") else {}
        self.end()
        said = options.pop("guarantee", Guarantee.EXACTLY_ONCE.value).lower()
        if options:
            other = next(iter(options))
            raise self.wrong(f"a sink has the option guarantee, and not '{other}'", origin)
        if said not in set(Guarantee):
            known = ", ".join(f"'{each}'" for each in Guarantee)
            raise self.wrong(f"guarantee is one of {known}, not '{said}'", origin)
        return SinkDefinition(name, subscription, into, target, Guarantee(said), origin)

    # Clauses

    def columns(self, name: str) -> tuple[Schema, Watermark | None]:
        origin = self.origin
        self.expect("(")
        columns: list[Column] = []
        watermark = None
        while True:
            if self.seen("WATERMARK"):
                if watermark:
                    raise self.wrong(f"'{name}' has two watermarks")
                watermark = self.watermark()
            else:
                columns.append(self.column())
            if not self.took(","):
                break
        self.expect(")")
        if not columns:
            raise self.wrong(f"'{name}' declares no columns", origin)
        try:
            return Schema(tuple(columns)), watermark
        except BadDefinition as error:
            raise self.wrong(error.message, origin) from error

    def column(self) -> Column:
        name, place, words = self.name("a column"), self.origin, ""
        if name.startswith("_"):
            raise self.wrong("columns that begin with '_' are kept for Headrace itself", place)
        depth = 0
        while not self.done and (
            depth or not (self.seen(",") or self.seen(")") or self.seen("NOT"))
        ):
            if self.seen("COMMENT"):
                break
            word = self.word()
            depth += (word in "(<") - word.count(")") - word.count(">")
            words += word
        nullable = True
        if self.took("NOT"):
            self.expect("NULL")
            nullable = False
        if self.took("COMMENT"):
            self.literal()
        try:
            return Column(name, Type.parse(words), nullable)
        except BadDefinition as error:
            raise BadDefinition(
                f"column '{name}': {error.message}", hint=error.hint, origin=place
            ) from error

    def watermark(self) -> Watermark:
        self.expect("WATERMARK")
        column = self.name("the watermark column")
        self.expect("DELAY")
        self.expect("OF")
        self.expect("INTERVAL")
        place, words = self.origin, []
        while not (self.done or self.seen(",") or self.seen(")")):
            words.append(self.word().strip("'"))
        try:
            return Watermark(column, duration_us(" ".join(words)))
        except ValueError as error:
            raise self.wrong(f"the watermark's delay is wrong: {error}", place) from error

    def options(self) -> dict[str, str]:
        self.expect("(")
        found: dict[str, str] = {}
        while not self.seen(")"):
            key = self.word().strip("'`")
            while self.took("."):
                key += "." + self.word().strip("'`")
            self.took("=")
            sign = "-" if self.took("-") else ""
            if key.lower() in found:
                raise self.wrong(f"the option '{key}' is given twice")
            found[key.lower()] = sign + self.word()
            if not self.took(","):
                break
        self.expect(")")
        return found
