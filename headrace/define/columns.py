"""One column of a stream or table: `name TYPE`, and its clauses, in any order.

    NOT NULL · FORMAT 'epoch_ms' · FROM '$.actor.id' · DEFAULT 0 · COMMENT 'who did it'
    GENERATED ALWAYS AS (price * qty)

tests/define/test_columns.py checks what is read and each sentence of refusal.
"""

from __future__ import annotations

import json
from dataclasses import replace

from sqlglot.tokenizer_core import TokenType

from headrace.core.errors import BadDefinition
from headrace.core.json_path import JsonPath
from headrace.core.origin import Origin
from headrace.core.schema import Column, ComputedExpression, Type
from headrace.core.time_format import TimeFormat
from headrace.define.defaults import default_mismatch
from headrace.define.tokens import TokenCursor

_CLAUSES = ("NOT", "FORMAT", "FROM", "DEFAULT", "COMMENT", "GENERATED")
_OF_EVENTS = {"NOT": "NOT NULL", "FORMAT": "FORMAT", "FROM": "FROM", "DEFAULT": "DEFAULT"}
_LITERAL = "a quoted string, a number, TRUE, FALSE or NULL"


def read_column(tokens: TokenCursor) -> Column:
    """Parse a column."""
    name, place = tokens.name("a column"), tokens.origin
    if name.startswith("_"):
        raise tokens.error("column names that begin with '_' are reserved", place)
    column, said = Column(name, _type(tokens, name, place)), set[str]()
    while (word := tokens.peek()) in _CLAUSES:
        if word in said:
            raise tokens.error(f"column '{name}' has {word} twice", place)
        said.add(word)
        tokens.word()
        column = _with(tokens, column, word, place)
    _check_generated(column, said, place)
    if expected := default_mismatch(column):
        what = f"column '{name}': the default {column.default}"
        raise tokens.error(f"{what} is not {expected}", place)
    return column


def _check_generated(column: Column, said: set[str], place: Origin) -> None:
    other = next((clause for word, clause in _OF_EVENTS.items() if word in said), None)
    if column.generated and other:
        raise BadDefinition(
            f"column '{column.name}' is GENERATED and cannot have {other}",
            hint=f"remove {other}: a generated column is computed, not read from the event.",
            origin=place,
        )


def _type(tokens: TokenCursor, name: str, place: Origin) -> Type:
    text, depth = "", 0
    while not tokens.done and (depth or tokens.peek() not in {",", ")", *_CLAUSES}):
        sign = tokens.peek()
        depth += sign.count("(") + sign.count("<") - sign.count(")") - sign.count(">")
        quoted = tokens.kind() is TokenType.IDENTIFIER
        word = tokens.word()
        word = "`" + word.replace("`", "``") + "`" if quoted else word
        text += f" {word}" if _apart(text, word) else word
    try:
        return Type.parse(text)
    except BadDefinition as error:
        raise BadDefinition(
            f"column '{name}': {error.message}", hint=error.hint, origin=place
        ) from error


def _apart(text: str, word: str) -> bool:
    """Whether a space belongs between a text and its next word."""
    return text.endswith((",", ":")) or (text[-1:].isalnum() and word[:1] not in "<>(),:")


def _with(tokens: TokenCursor, column: Column, word: str, place: Origin) -> Column:
    """The column with one more clause."""
    if word == "NOT":
        tokens.expect("NULL")
        return replace(column, nullable=False)
    if word == "DEFAULT":
        return replace(column, default=_literal(tokens, place))
    if word == "GENERATED":
        return replace(column, generated=_generated(tokens, column.name))
    text = tokens.literal()
    try:
        if word == "FORMAT":
            return replace(column, format=_format(column, text))
        if word == "FROM":
            return replace(column, path=str(JsonPath.parse(text)))
    except ValueError as error:
        raise tokens.error(f"column '{column.name}': {error}", place) from error
    return column


def _generated(tokens: TokenCursor, name: str) -> ComputedExpression:
    """`ALWAYS AS (expression)`, as it is written."""
    tokens.expect("ALWAYS")
    tokens.expect("AS")
    tokens.expect("(")
    first, place, depth = tokens.at, tokens.origin, 1
    while depth:
        depth += {"(": 1, ")": -1}.get(tokens.peek(), 0)
        tokens.word()
    tokens.at -= 1
    if tokens.at == first:
        raise tokens.error(f"column '{name}': GENERATED ALWAYS AS () requires an expression")
    text = tokens.text_from(first)
    tokens.expect(")")
    return ComputedExpression(text, place)


def _literal(tokens: TokenCursor, place: Origin) -> str | None:
    """The literal as JSON; None for NULL."""
    if tokens.kind() is TokenType.STRING:
        return json.dumps(tokens.literal())
    words = {"TRUE": "true", "FALSE": "false", "NULL": None}
    if tokens.peek() in words:
        return words[tokens.word().upper()]
    sign = "-" if tokens.accept("-") else ""
    if tokens.kind() is not TokenType.NUMBER:
        raise tokens.error(f"DEFAULT requires {_LITERAL}", place)
    number = sign + tokens.word()
    try:
        json.loads(number)
    except ValueError as error:
        raise tokens.error(f"DEFAULT requires {_LITERAL}, not {number}", place) from error
    return number


def _format(column: Column, text: str) -> str:
    if column.type != Type("TIMESTAMP"):
        raise ValueError(f"FORMAT requires a TIMESTAMP, got {column.type.spark}")
    return TimeFormat.parse(text).text
