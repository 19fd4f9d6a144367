"""Reads `SUBSCRIBE TO view [WHERE …] [EMIT …] [ACCUMULATING | …]`, and the same clauses of a sink.

Only the syntax is checked here; `compile` checks whether the view supports it.
define/stream_subscription.py parses subscriptions to streams.
tests/define/test_view_subscription.py checks what is read and what is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from headrace.core.errors import BadDefinition, BadQuery
from headrace.core.origin import Origin
from headrace.core.subscription import Every, Form, Mode, Subscription
from headrace.define.dialect import parse_query, sql_of
from headrace.define.tokens import TokenCursor, statements

_TRIGGERS = "EARLY EVERY …, ON TIME, LATE EVERY … or ALLOWED LATENESS INTERVAL …"
_WORDS = ("EARLY", "ON", "LATE", "ALLOWED")
EMISSION = ("EMIT", *(mode.value.upper() for mode in Mode))
_FORMS = {"INSERTS": Form.INSERTS, "DELETES": Form.DELETES, "RELATION": Form.RELATION}


def read_subscription(text: str) -> Subscription:
    """Parse a subscription to a view.

    >>> asked = read_subscription("SUBSCRIBE TO hits EMIT EARLY EVERY 10 EVENTS, ON TIME")
    >>> asked.early.events, asked.on_time, asked.late, asked.lateness_us
    (10, True, None, 0)
    """
    with as_query_errors():
        tokens, view = begin_subscription(text)
        if tokens.starts_with("FROM"):
            raise tokens.error(f"FROM BEGINNING requires a stream; '{view}' is a view")
        where, condition = read_where(tokens)
        made = replace(read_emission(tokens, view, where), condition=condition)
        tokens.end()
    return made


@contextmanager
def as_query_errors() -> Iterator[None]:
    """Raise errors of a subscription as BadQuery instead of BadDefinition."""
    try:
        yield
    except BadDefinition as error:
        raise BadQuery(error.message, hint=error.hint, origin=error.origin) from error


def begin_subscription(text: str) -> tuple[TokenCursor, str]:
    """The cursor after the name of a subscription's view or stream, and the name."""
    found = list(statements(text, "subscription"))
    if len(found) != 1:
        raise BadDefinition(
            "expected a single SUBSCRIBE statement", origin=Origin("subscription", 1)
        )
    tokens = TokenCursor(text, "subscription", found[0])
    tokens.expect("SUBSCRIBE")
    tokens.expect("TO")
    return tokens, tokens.name("the view or stream")


def read_where(tokens: TokenCursor) -> tuple[tuple[tuple[str, str], ...], str]:
    """`WHERE key = value AND …` as pairs, any other condition as SQL; each if it is there."""
    start = tokens.at
    if _plain(tokens):
        tokens.at = start
        return _keys(tokens), ""
    tokens.at = start
    return (), read_condition(tokens) if tokens.accept("WHERE") else ""


def _plain(tokens: TokenCursor) -> bool:
    """Whether the condition is only `column = value AND …`."""
    word = "WHERE"
    while tokens.accept(word):
        word = "AND"
        named = tokens.kind() is TokenType.IDENTIFIER or tokens.peek().isidentifier()
        if not named or tokens.peek(1) != "=":
            return False
        tokens.at += 4 if tokens.peek(2) == "-" else 3
    return tokens.at == len(tokens.tokens) or _ends(tokens)


def _ends(tokens: TokenCursor) -> bool:
    return tokens.starts_with("INTO") or any(map(tokens.starts_with, EMISSION))


def read_condition(tokens: TokenCursor) -> str:
    """The condition, read and written again, so that nothing but a condition can be in it."""
    origin, first, depth = tokens.origin, tokens.at, 0
    while not tokens.done and not (depth == 0 and _ends(tokens)):
        depth += tokens.starts_with("(") - tokens.starts_with(")")
        tokens.at += 1
    if tokens.at == first:
        raise tokens.error("expected a condition after WHERE", origin)
    text = tokens.text_from(first)
    query = parse_query(f"SELECT 1 WHERE {text}", origin)
    said = {part for part, value in query.args.items() if value}
    if not isinstance(query, exp.Select) or said - {"expressions", "where"}:
        raise tokens.error("only a condition may follow WHERE", origin)
    if query.find(exp.Subquery) or len(list(query.find_all(exp.Select))) > 1:
        raise tokens.error("subqueries are not allowed in the condition after WHERE", origin)
    return sql_of(query.args["where"].this)


def _keys(tokens: TokenCursor) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    while tokens.accept("AND" if found else "WHERE"):
        name = tokens.name("a key")
        tokens.expect("=")
        if name in found:
            raise tokens.error(f"the key '{name}' is given twice")
        found[name] = _value(tokens)
    return tuple(found.items())


def _value(tokens: TokenCursor) -> str:
    if tokens.starts_with("NULL"):
        raise tokens.error("a key cannot be compared with NULL")
    sign = "-" if tokens.accept("-") else ""
    return sign + tokens.word()


def read_emission(
    tokens: TokenCursor, view: str, where: tuple[tuple[str, str], ...] = ()
) -> Subscription:
    """`EMIT …` and the mode, each if it is there."""
    if not tokens.accept("EMIT") or tokens.accept("CHANGES"):
        return Subscription(view, where, mode=_mode(tokens))
    for word, form in _FORMS.items():
        if tokens.accept(word):
            return Subscription(view, where, form)
    triggers = _Triggers(tokens)
    triggers.read()
    return Subscription(
        view,
        where,
        mode=_mode(tokens),
        early=triggers.early,
        on_time=triggers.on_time,
        late=triggers.early if triggers.endless else triggers.late,
        lateness_us=triggers.lateness_us,
    )


def _mode(tokens: TokenCursor) -> Mode:
    for mode in Mode:
        if tokens.accept(mode.value.upper()):
            return mode
    return Mode.ACCUMULATING


class _Triggers:
    """The triggers after EMIT, each at most once, in any order, with commas or without."""

    def __init__(self, tokens: TokenCursor) -> None:
        self.tokens = tokens
        self.early: Every | None = None
        self.late: Every | None = None
        self.on_time = False
        self._lateness: int | None = None
        self._said: set[str] = set()

    @property
    def endless(self) -> bool:
        """EARLY alone does not depend on the ends of windows, so it continues after them."""
        return self._said == {"EARLY"}

    @property
    def lateness_us(self) -> int | None:
        """Without LATE there is nothing to wait for; with it a window stays open unless a lateness
        is given.
        """
        if "ALLOWED" in self._said:
            return self._lateness
        return None if self.late or self.endless else 0

    def read(self) -> None:
        more = True
        while more:
            word = next((word for word in _WORDS if self.tokens.accept(word)), None)
            if word is None:
                raise self._expected()
            self._one(word)
            more = self.tokens.accept(",") or any(map(self.tokens.starts_with, _WORDS))

    def _expected(self) -> BadDefinition:
        return BadDefinition(
            "expected a trigger after EMIT",
            hint=f"write {_TRIGGERS}; or CHANGES, INSERTS, DELETES or RELATION.",
            origin=self.tokens.origin,
        )

    def _one(self, word: str) -> None:
        if word in self._said:
            raise self.tokens.error(f"{word} is given twice")
        self._said.add(word)
        if word == "ON":
            self.tokens.expect("TIME")
            self.on_time = True
        elif word == "ALLOWED":
            self.tokens.expect("LATENESS")
            self.tokens.expect("INTERVAL")
            self._lateness = self.tokens.interval()
        else:
            self.tokens.expect("EVERY")
            every = _every(self.tokens)
            self.early, self.late = (every, self.late) if word == "EARLY" else (self.early, every)


def _every(tokens: TokenCursor) -> Every:
    if tokens.accept("INTERVAL"):
        origin, interval = tokens.origin, tokens.interval()
        if interval <= 0:
            raise tokens.error("the interval must be greater than zero", origin)
        return Every(interval_us=interval)
    origin, number = tokens.origin, tokens.word()
    if not number.isdecimal() or not 1 <= int(number) <= 10**9:
        raise tokens.error(
            f"EVERY requires a number of EVENTS or an INTERVAL, not '{number}'", origin
        )
    if not tokens.accept("EVENT"):
        tokens.expect("EVENTS")
    return Every(events=int(number))
