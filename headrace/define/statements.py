"""A project file is a list of statements; each becomes one definition with its origin.

`CREATE STREAM`, `CREATE TABLE` and `CREATE VIEW` are read token by token, so that each mistake is
named with its line. A SELECT is kept as written: `compile` reads its structure and Spark its
meaning. tests/define/test_statements.py and tests/plans/error_*.sql check what is read and what
is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from headrace.core.errors import BadDefinition, Unsupported
from headrace.core.origin import Origin
from headrace.core.schema import Column, Schema, Type
from headrace.core.time import duration_us
from headrace.define.definitions import (
    Definition,
    Pace,
    ProcessorCall,
    QueryDefinition,
    StreamDefinition,
    TableDefinition,
    Watermark,
)
from headrace.define.dialect import Headrace
from headrace.define.pace import PACE_OPTIONS, read_pace

KNOWN = "CREATE STREAM, CREATE TABLE, CREATE VIEW and CREATE STREAM … AS SELECT"
_WATERMARK_OPTIONS = ("watermark.ahead", "watermark.idle")
_STREAM_OPTIONS = (
    "source", "format", "key", "id", "partitions", *_WATERMARK_OPTIONS, *PACE_OPTIONS,
)  # fmt: skip


def read_statements(text: str, path: str) -> list[Definition]:
    """All definitions of one file.

    >>> text = "CREATE STREAM a (x INT); CREATE VIEW v AS SELECT count(*) FROM a"
    >>> [definition.name for definition in read_statements(text, "a.sql")]
    ['a', 'v']
    """
    try:
        tokens = Headrace().tokenize(text)
    except TokenError as error:
        raise BadDefinition(f"{path} cannot be read: {error}", origin=Origin(path, 1)) from error
    return [_Reader(text, path, statement).definition() for statement in _split(tokens)]


def _split(tokens: list[Token]) -> Iterator[list[Token]]:
    statement: list[Token] = []
    for token in tokens:
        if token.token_type is not TokenType.SEMICOLON:
            statement.append(token)
        elif statement:
            yield statement
            statement = []
    if statement:
        yield statement


@dataclass(slots=True)
class _Reader:
    """Walks the tokens of one statement."""

    text: str
    path: str
    tokens: list[Token]
    at: int = 0

    def definition(self) -> Definition:
        first = self.origin
        self.expect("CREATE")
        kind = self.word().upper()
        if kind not in {"STREAM", "TABLE", "VIEW"}:
            raise Unsupported(
                f"CREATE {kind} is not known", hint=f"known are {KNOWN}.", origin=first
            )
        name = self.name(f"the {kind.lower()}")
        if name.startswith("_"):
            raise self.wrong("names that begin with '_' are kept for Headrace itself", first)
        if kind == "VIEW" or (kind == "STREAM" and self.seen("AS")):
            return self.query(kind.lower(), name, first)
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
        self.expect("PARTITION BY") if self.seen("PARTITION BY") else self.expect("PARTITION")
        keys = [self.name("a column")]
        while self.took(","):
            keys.append(self.name("a column"))
        self.expect(")")
        self.end()
        call = ProcessorCall(processor, tuple(keys))
        return QueryDefinition(name, "stream", f"SELECT * FROM {source}", origin, place, call)

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

    # Tokens

    @property
    def done(self) -> bool:
        return self.at >= len(self.tokens)

    @property
    def origin(self) -> Origin:
        token = self.tokens[min(self.at, len(self.tokens) - 1)]
        before = self.text[: token.start]
        return Origin(self.path, before.count("\n") + 1)

    def seen(self, word: str) -> bool:
        return not self.done and self.tokens[self.at].text.upper() == word

    def took(self, word: str) -> bool:
        found = self.seen(word)
        self.at += found
        return found

    def word(self) -> str:
        if self.done:
            raise self.wrong("the statement ends too early")
        self.at += 1
        return self.tokens[self.at - 1].text

    def name(self, what: str) -> str:
        token = self.tokens[self.at] if not self.done else None
        if token is None or not token.text.isidentifier():
            raise self.wrong(f"a name for {what} is expected: letters, digits and '_'")
        return self.word()

    def literal(self) -> str:
        if self.done or self.tokens[self.at].token_type is not TokenType.STRING:
            raise self.wrong("a text in quotes is expected")
        return self.word()

    def expect(self, word: str) -> None:
        if not self.took(word):
            found = (
                "the statement ends" if self.done else f"'{self.tokens[self.at].text}' stands there"
            )
            raise self.wrong(f"{word} is expected, but {found}")

    def end(self) -> None:
        if not self.done:
            raise self.wrong(
                f"nothing more is expected, but '{self.tokens[self.at].text}' stands there"
            )

    def wrong(self, message: str, origin: Origin | None = None) -> BadDefinition:
        return BadDefinition(message, origin=origin or self.origin)
